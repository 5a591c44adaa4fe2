"""Absolute position of words in the image, through their anchors."""

import torch
from torch import nn

from xmodal import functional as F
from xmodal.models.necks.position import NoPosition
from xmodal.registry import MODELS
from xmodal.structures import CrossTerms, LowRank, Relation, Tokens

# Σ_g b_g at the start: a patch with a similarity of 0.9 has e³ times the attention of 0.7's.
_SCALE = 15.0


@MODELS.register_module(name=['AnchorAbsolutePosition', 'anchor_ape'])
class AnchorAbsolutePosition(NoPosition):
    """Words look at their anchors and learn where these are; not in the papers.

    The distances of ACE-RPE (Eq. 7) have no direction: left and right are the same to them. Here
    the similarities S_g of Eq. 3 draw a word's attention to its anchors, and the values of patches
    have their places:

        logits(t, v) = q_t · k_v / √d + Σ_g b_g S_g(v, t)
        attended(t) = Σ_v a(t, v) (value_v + (y_v, x_v) W)

    b: ``similarity_weight`` and W: ``place_weight``, both of each layer. So a word learns its
    place, and two words can be compared by theirs. The similarities must find what words mean, as
    :class:`AnchorContrastHead` trains them to. Patches look at words by the same logits.

    An image may be regions (B, R, D) with boxes, whose centres are their places.

    Args:
        depth: number of fusion layers.
        embed_dims: D, the width of the tokens.
        num_heads: heads of a fusion layer.
        groups: G, groups of the similarity (Eq. 3).
    """

    has_similarities = True
    undecayed = ('similarity_weight',)  # a vector a layer, stacked

    def __init__(self, depth: int, embed_dims: int, num_heads: int, groups: int = 8) -> None:
        super().__init__(depth, embed_dims, num_heads)
        F.check_groups('position.groups', groups, embed_dims)
        self.groups = groups
        self.similarity_weight = nn.Parameter(torch.full((depth, groups), _SCALE / groups))
        self.place_weight = nn.Parameter(torch.empty(depth, 2, embed_dims))
        nn.init.normal_(self.place_weight, std=0.5)  # tokens have 1, after the layer norm

    def relate(self, image: Tokens, text: Tokens) -> Relation:
        """S_G of Eq. 3, (B, 1 + M, 1 + N, G), and the places of the patches.

        The similarity of an image's [CLS] is −1, the lowest.

        Raises:
            ValueError: for regions without boxes, which are nowhere.
        """
        places = image.places()
        similarity = F.multi_group_similarity(image.embeddings, text.embeddings, self.groups)
        if image.boxes is None:  # no word is an anchor of [CLS], which is nowhere
            lowest = torch.full_like(similarity[:, :1], -1)
            similarity = torch.cat([lowest, similarity[:, 1:]], 1)
        return Relation(similarity=similarity, places=places.to(similarity))

    def cross_terms(self, layer: int, relation: Relation, queries: str) -> CrossTerms:
        """The logits of anchors, and to words the places of the patches."""
        # A bias is scaled with the logits.
        scale = (self.embed_dims // self.num_heads) ** 0.5
        bias = relation.similarity @ (scale * self.similarity_weight[layer])
        if queries == 'image':
            return CrossTerms(bias=bias[:, None])
        bias = bias.transpose(1, 2)
        places = relation.places[:, None].expand(-1, bias.shape[1], -1, -1)
        return CrossTerms(bias=bias[:, None], pairs=LowRank(places, self.place_weight[layer]))
