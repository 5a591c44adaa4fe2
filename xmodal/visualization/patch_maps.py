"""From what a model says of the tokens of an image to maps of the image."""

import torch
from torch import Tensor

from xmodal.models.backbones.timm_grid import cell_boxes
from xmodal.structures import Tokens

SIDE = 32  # of a map that boxes of a detector are painted on


def mean_over_tokens(values: Tensor, tokens: Tokens, first: int = 0) -> Tensor:
    """The mean over the tokens from ``first`` on, without padding, (B, L, …) to (B, …)."""
    real = tokens.full_mask()[:, first:].to(values)
    real = real.view(*real.shape, *[1] * (values.ndim - 2))
    return (values[:, first:] * real).sum(1) / real.sum(1).clamp(min=1)


def patch_maps(values: Tensor, image: Tokens) -> Tensor:
    """Values of an image's tokens as maps.

    Patches are laid out as their grid, and [CLS] is left out. Those of a convolutional stem are at
    the corners of the grid's cells: their maps are interpolated, with twice the rows and columns.
    Regions that are the cells of a grid are laid out as well; other regions are painted with their
    boxes on a map of 32 × 32, each place with the largest value of the boxes over it, and with 0
    where there is none.

    Args:
        values: (B, …, L).
        image: tokens of B images: (B, 1 + M, D) with a grid of h × w = M patches, or regions with
            boxes, (B, R, D).

    Returns:
        (B, …, h, w), where patches are at corners (B, …, 2h, 2w).

    Raises:
        ValueError: when the tokens are regions without boxes.
    """
    if image.grid_size is not None:
        maps = values[..., 1:].unflatten(-1, image.grid_size)
        return _between_corners(maps) if image.at_corners else maps
    if image.boxes is None:
        raise ValueError(
            'the regions of the image have no boxes, so that there is no map of it: read features '
            'that come with boxes (docs/regions.md)'
        )
    count = image.boxes.shape[1]
    side = round(count**0.5)
    if _is_grid(image.boxes, side):
        return values.unflatten(-1, (side, side))
    covered = _cover(image.boxes, SIDE) & image.full_mask()[..., None]
    covered = covered.view(len(covered), *[1] * (values.ndim - 2), *covered.shape[1:])
    lowest = False if values.dtype == torch.bool else -torch.inf
    painted = values[..., None].masked_fill(~covered, lowest).amax(-2)
    painted = painted.masked_fill(~covered.any(-2), 0)
    return painted.unflatten(-1, (SIDE, SIDE))


def _between_corners(maps: Tensor) -> Tensor:
    """Maps (…, h, w) with values at the upper left corners of cells, to quarters of the cells.

    A quarter has the value at its middle, bilinear, or that of the nearest corner if values are
    bool. At the lower and right edges there is no corner, but the nearest one counts.
    """
    values = maps.float()
    for axis in (-2, -1):
        last = maps.shape[axis] - 1
        place = ((torch.arange(2 * last + 2, device=maps.device) + 0.5) / 2).clamp(max=last)
        before, after = place.floor().long(), place.ceil().long()
        weight = place - before
        weight = weight[:, None] if axis == -2 else weight
        values = values.index_select(axis, before).lerp(values.index_select(axis, after), weight)
    return values > 0.5 if maps.dtype == torch.bool else values


def _is_grid(boxes: Tensor, side: int) -> bool:
    """Whether boxes (B, R, 4) are the cells of a square grid, row after row."""
    if side**2 != boxes.shape[1]:
        return False
    cells = cell_boxes(side**2).to(boxes.device)
    return torch.allclose(boxes.float(), cells.expand_as(boxes), atol=1e-3)


def _cover(boxes: Tensor, side: int) -> Tensor:
    """The places of a map whose centres lie in boxes (B, R, 4), (B, R, side²) bool."""
    centres = (torch.arange(side, device=boxes.device) + 0.5) / side
    columns, rows = (
        (boxes[..., low, None] <= centres) & (centres < boxes[..., low + 2, None]) for low in (0, 1)
    )
    return (rows[..., :, None] & columns[..., None, :]).flatten(-2)
