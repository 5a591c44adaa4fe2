"""Anchor maps of ACE-RPE: which patches each word is related to."""

import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.structures import Tokens


@torch.no_grad()
def anchor_maps(model: nn.Module, image: Tokens, text: Tokens) -> tuple[Tensor, Tensor] | None:
    """Returns the anchor patches of each word, and how close every patch is to it.

    Args:
        model: in eval mode; its position is ACE-RPE, or one with the same kind of relation.
        image: (B, 1 + M, D) with a grid of h × w = M patches.
        text: (B, 1 + N, D).

    Returns:
        Anchors (Eq. 5), bool (B, 1 + N, h, w, G), and closeness 1 / P, (B, 1 + N, h, w, G), with P
        of Eq. 7 and 0 where no anchor reaches the patch. None for a position without anchors.
    """
    relation = model.relate(image, text)
    if relation is None or relation.similarity is None:
        return None
    rows, columns = image.grid_size

    def grid(x: Tensor) -> Tensor:
        return x[:, 1:].transpose(1, 2).unflatten(2, (rows, columns))

    anchors = F.anchor_mask(relation.similarity, model.backbone.position.delta)
    return grid(anchors), grid(1 / relation.distance.clamp(min=1))
