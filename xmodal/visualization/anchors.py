"""Where ACE-RPE locates the words."""

import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.structures import Tokens


@torch.no_grad()
def anchor_maps(model: nn.Module, image: Tokens, text: Tokens) -> tuple[Tensor, Tensor] | None:
    """The patches that are anchors of each word, and how near every patch is to it.

    Args:
        model: has ``locate``.
        image: (B, 1 + M, D) with a grid of h × w = M patches.
        text: (B, 1 + N, D).

    Returns:
        Anchors, bool (B, 1 + N, h, w, G) (Eq. 5), and closeness 1 / P, (B, 1 + N, h, w, G), with P
        of Eq. 7 and 0 where no anchor reaches the patch; None for a position without anchors.
    """
    relation = model.relate(image, text)
    if relation is None or relation.similarity is None:
        return None
    rows, columns = image.grid_size

    def grid(x: Tensor) -> Tensor:
        return x[:, 1:].transpose(1, 2).unflatten(2, (rows, columns))

    anchors = F.anchor_mask(relation.similarity, model.backbone.position.delta)
    return grid(anchors), grid(1 / relation.distance.clamp(min=1))
