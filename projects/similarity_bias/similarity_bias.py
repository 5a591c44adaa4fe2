"""A position in one file: words attend more to the patches that are similar to them."""

import torch
from torch import nn
from torch.nn.functional import normalize

from xmodal.models.necks.position import NoPosition
from xmodal.registry import MODELS
from xmodal.structures import CrossTerms, Relation, Tokens


@MODELS.register_module()
class SimilarityBias(NoPosition):
    """Adds to each cross-attention's logits the cosine of patch and word, times a learned scale.

    Like ACE-RPE it relates tokens by their similarity. Unlike ACE-RPE it has no threshold and no
    paths through anchors, and it learns one number a layer.

    Args:
        depth: number of fusion layers.
        embed_dims: D.
        num_heads: heads of a fusion layer.
    """

    has_similarities = True

    def __init__(self, depth: int, embed_dims: int, num_heads: int) -> None:
        super().__init__(depth, embed_dims, num_heads)
        self.scale = nn.Parameter(torch.ones(depth))

    def relate(self, image: Tokens, text: Tokens) -> Relation:
        """Cosines (B, 1 + M, 1 + N, 1), once for all layers."""
        patches, words = (normalize(tokens.embeddings, dim=-1) for tokens in (image, text))
        return Relation(similarity=(patches @ words.transpose(1, 2))[..., None])

    def cross_terms(self, layer: int, relation: Relation, queries: str) -> CrossTerms:
        """The bias from the side of the queries, (B, 1, Lq, Lk), equal for all heads."""
        cosine = relation.similarity[..., 0]
        if queries == 'text':
            cosine = cosine.transpose(1, 2)
        return CrossTerms(bias=self.scale[layer] * cosine[:, None])
