"""The shortest path of every patch and word through an anchor nearby (ACE-RPE, Eq. 7)."""

import functools
import math
from collections.abc import Callable, Iterator
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import pad

from xmodal.functional.exporting import is_exporting
from xmodal.functional.precision import full_precision

FAR = 2**15


@full_precision
def relative_distance(
    distance: Tensor,
    grid_size: tuple[int, int],
    attention_mask: Tensor | None = None,
    patch_window: int = 3,
    token_window: int = 5,
) -> Tensor:
    """P_ace (Eq. 7): the shortest path of every patch and word through an anchor nearby.

    min over i, j of D_p2p(m, i) + D_G(i, j) + D_t2t(j, n), with D_p2p Euclidean, in patches, and
    D_t2t = |j − n|. The minimum separates: first over the words j, then over the patches i. [CLS]
    has no location: its only neighbour is itself, at distance 0.

    The backward pass keeps only the winning anchor of each pair.

    Args:
        distance: D_G, (B, 1 + M, 1 + N, G); from 2¹⁵ on it counts as +inf.
        grid_size: rows and columns of patches; their product is M.
        attention_mask: True for real words, (B, 1 + N) bool; padding is on no path.
        patch_window: side of the square of patches searched (B_p = 9 is 3 × 3).
        token_window: B_t, number of words searched.

    Returns:
        (B, 1 + M, 1 + N, G), +inf where there is no path and for padding words.
    """
    padding = None if attention_mask is None else ~attention_mask[:, None, :, None]
    walk = functools.partial(_walk_grid, grid_size=grid_size, window=patch_window)
    return _relative_distance(distance, padding, token_window, walk)


@full_precision
def relative_box_distance(
    distance: Tensor,
    boxes: Tensor,
    image_mask: Tensor,
    attention_mask: Tensor,
    neighbours: int = 9,
    token_window: int = 5,
) -> Tensor:
    """P_ace (Eq. 7) with boxes instead of patches, and without [CLS] among them.

    D_p2p is the Euclidean distance of the centres of the boxes, in patches: R boxes count as R
    patches of a square image, each 1 / √R of its side. The search covers the nearest boxes.

    Args:
        distance: D_G, (B, R, 1 + N, G); from 2¹⁵ on it counts as +inf.
        boxes: x1, y1, x2, y2 as fractions of the image, (B, R, 4).
        image_mask: True for real boxes, (B, R) bool; padding is on no path.
        attention_mask: True for real words, (B, 1 + N) bool; padding is on no path.
        neighbours: B_p, number of boxes searched, including the box itself.
        token_window: B_t, number of words searched.

    Returns:
        (B, R, 1 + N, G), +inf where there is no path, for padding words and padding boxes.
    """
    padding = ~(image_mask[:, :, None] & attention_mask[:, None])[..., None]
    near, steps = _nearest_boxes(boxes, image_mask, neighbours)
    walk = functools.partial(_walk_boxes, near=near, steps=steps)
    return _relative_distance(distance, padding, token_window, walk)


def _nearest_boxes(boxes: Tensor, mask: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The nearest boxes of each box, itself first, and how far they are, both (B, R, K).

    If an image has fewer than K boxes, the rest are the box itself.
    """
    centres = (boxes[..., :2] + boxes[..., 2:]) / 2
    distance = (centres[:, :, None] - centres[:, None]).square().sum(-1).sqrt()
    distance = distance * mask.sum(1).sqrt()[:, None, None]
    itself = torch.eye(boxes.shape[1], dtype=torch.bool, device=boxes.device)
    ranked = distance.masked_fill(~mask[:, None], math.inf).masked_fill(itself, -1)
    ranked, near = (x[..., :count] for x in ranked.sort(dim=-1, stable=True))
    missing = ranked.isinf()
    index = torch.arange(boxes.shape[1], device=boxes.device)[:, None]
    return torch.where(missing, index, near), ranked.masked_fill(missing, 0).clamp(min=0)


def _relative_distance(
    distance: Tensor, padding: Tensor | None, token_window: int, walk: Callable
) -> Tensor:
    """Eq. 7 with ``walk``, the steps between patches; ``padding``: pairs that are on no path."""
    needs_gradient = torch.is_grad_enabled() and distance.requires_grad
    if is_exporting() or not needs_gradient:
        return _distance_alone(distance, padding, token_window, walk)
    with torch.no_grad():
        candidates = distance if padding is None else distance.masked_fill(padding, math.inf)
        length, anchor = _shortest_path(candidates, token_window, walk)
    reached = distance.flatten(1, 2).gather(1, anchor.flatten(1, 2)).view_as(anchor)
    with torch.no_grad():
        steps = (length - reached).masked_fill_(length >= FAR, math.inf)
        if padding is not None:
            steps.masked_fill_(padding, math.inf)
    return reached + steps


def _distance_alone(
    distance: Tensor, padding: Tensor | None, token_window: int, walk: Callable
) -> Tensor:
    """The same in floating point: takes half of the time where no gradient needs the anchors.

    ONNX, which does not shift signed integers, gets it, too.
    """
    paths = distance.detach().clamp(max=FAR)
    if padding is not None:
        paths = paths.masked_fill(padding, FAR)
    _walk(paths, token_window, walk, lambda length: length)
    unreachable = paths >= FAR if padding is None else (paths >= FAR) | padding
    return paths.masked_fill(unreachable, math.inf)


def _shortest_path(distance: Tensor, token_window: int, walk: Callable) -> tuple[Tensor, Tensor]:
    """The length of each pair's shortest path, and the flat index of its anchor (i, j).

    A path is one integer: its length in fixed point and, in the lowest bits, the index of its
    anchor. So a step changes only the length, and a minimum keeps the anchor with it.
    """
    patches, words = distance.shape[1:3]
    index_bits = (patches * words).bit_length()
    fraction_bits = 47 - index_bits  # 2 · FAR, the fraction and the index make 63 bits
    index = torch.arange(patches * words, device=distance.device).view(patches, words, 1)
    paths = (distance.clamp(max=FAR) * 2**fraction_bits).long()
    paths = paths.bitwise_left_shift_(index_bits).add_(index)

    def fixed_point(length: float | Tensor) -> int | Tensor:
        if isinstance(length, Tensor):
            return (length.double() * 2**fraction_bits).round().long() << index_bits
        return round(length * 2**fraction_bits) << index_bits

    _walk(paths, token_window, walk, fixed_point)
    length = (paths >> index_bits).to(distance.dtype) * 2.0**-fraction_bits
    return length, paths & (2**index_bits - 1)


def _walk(paths: Tensor, token_window: int, walk: Callable, fixed_point: Callable) -> None:
    """Shortens paths, in place, by steps to the words around each, then to the patches."""
    reach, best = token_window // 2, paths[:, :, 1:]
    around = pad(best, (0, 0, reach, reach), value=fixed_point(FAR))
    for step in range(1, reach + 1):
        sides = (around.narrow(2, reach + side, best.shape[2]) for side in (-step, step))
        _shorten(best, sides, fixed_point(step))
    walk(paths, fixed_point)


def _walk_grid(
    paths: Tensor, fixed_point: Callable, grid_size: tuple[int, int], window: int
) -> None:
    """Shortens paths, in place, by a step to a patch of the square around each."""
    reach, best = window // 2, paths[:, 1:].unflatten(1, grid_size)
    around = pad(best, (0, 0, 0, 0, reach, reach, reach, reach), value=fixed_point(FAR))
    for down, right in product(range(reach + 1), repeat=2):
        if down or right:
            sides = (
                around.narrow(1, reach + row, grid_size[0]).narrow(2, reach + column, grid_size[1])
                for row, column in product({-down, down}, {-right, right})
            )
            _shorten(best, sides, fixed_point(math.hypot(down, right)))


def _walk_boxes(paths: Tensor, fixed_point: Callable, near: Tensor, steps: Tensor) -> None:
    """Shortens paths, in place, by a step to one of the boxes near each."""
    before = paths.clone()
    for index, step in zip(near.unbind(2), fixed_point(steps).unbind(2), strict=True):
        there = before.gather(1, index[..., None, None].expand_as(before))
        torch.minimum(paths, there.add_(step[..., None, None]), out=paths)


def _shorten(paths: Tensor, sides: Iterator[Tensor], step: int) -> None:
    """Replaces paths, in place, where a step to one of the sides is shorter."""
    torch.minimum(paths, functools.reduce(torch.minimum, sides).add_(step), out=paths)
