"""Whether a map over an image finds an object: the area under the ROC curve of its patches."""

import torch
from torch import Tensor


def location_auc(scores: Tensor, on_object: Tensor) -> Tensor:
    """The chance that a patch on the object scores higher than one beside it; ties count half.

    It is the area under the ROC curve (Mann–Whitney U over the number of pairs): 1 if all patches
    on the object come first, 0.5 for a map that says nothing, below for one that avoids the object.

    Args:
        scores: of each patch, higher is nearer, infinities allowed, (h, w) or (h, w, K) for K maps.
        on_object: (h, w) bool, neither all True nor all False.

    Returns:
        () or (K,) float32.

    Raises:
        ValueError: when all patches or none are on the object, or a score is NaN.
    """
    if on_object.all() or not on_object.any():
        raise ValueError('an AUC needs patches on the object and beside it')
    if scores.isnan().any():
        raise ValueError(f'{int(scores.isnan().sum())} of {scores.numel()} scores are NaN')
    on, beside = scores[on_object][:, None], scores[~on_object][None]
    return ((on > beside).float() + 0.5 * (on == beside).float()).mean((0, 1))


def patches_in_boxes(
    boxes: list[list[float]], grid_size: tuple[int, int], patch_size: int
) -> Tensor:
    """The patches whose centre is in one of the boxes, (h, w) bool.

    Args:
        boxes: x, y, width, height in pixels of the image that the model sees.
        grid_size: h and w.
        patch_size: in pixels.
    """
    y, x = (patch_size * (torch.arange(count) + 0.5) for count in grid_size)
    covered = torch.zeros(grid_size, dtype=torch.bool)
    for left, top, width, height in boxes:
        inside = (top <= y) & (y < top + height)
        covered |= inside[:, None] & ((left <= x) & (x < left + width))[None]
    return covered
