"""A position of your own, in one file: words look first at the patches that resemble them."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from xmodal.models.necks.position import CrossTerms, NoPosition
from xmodal.registry import MODELS
from xmodal.structures import Tokens


@MODELS.register_module()
class SimilarityBias(NoPosition):
    """Adds to each cross-attention's logits the cosine of patch and word, times a learned scale.

    Like ACE-RPE it relates tokens by their similarity; unlike it, there is no threshold, no path
    through anchors, and one number a layer to learn.

    Args:
        depth: number of fusion layers.
        embed_dims: D.
        num_heads: heads of a fusion layer.
    """

    def __init__(self, depth: int, embed_dims: int, num_heads: int) -> None:
        super().__init__(depth, embed_dims, num_heads)
        self.scale = nn.Parameter(torch.ones(depth))

    def relate(self, image: Tokens, text: Tokens) -> Tensor:
        """Cosines (B, 1 + M, 1 + N), once for all layers."""
        patches, words = (normalize(tokens.embeddings, dim=-1) for tokens in (image, text))
        return patches @ words.transpose(1, 2)

    def cross_terms(self, layer: int, relation: Tensor, queries: str) -> CrossTerms:
        """The bias from the side of the queries, (B, 1, Lq, Lk), equal for all heads."""
        cosine = relation if queries == 'image' else relation.transpose(1, 2)
        return CrossTerms(bias=self.scale[layer] * cosine[:, None])
