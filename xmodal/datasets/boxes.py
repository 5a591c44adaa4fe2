"""Boxes, and the checks of their coordinates."""

from collections.abc import Sequence

import numpy as np

from xmodal.fields import is_number, shorten

MAX_SIDE = 1_000_000  # pixels: no image is as wide
Box = list[float]  # x, y, width, height, in pixels


def find_invalid_box(boxes: np.ndarray, margin: float) -> int | None:
    """The first box that leaves its image, ends before it begins, or has a NaN.

    Args:
        boxes: x1, y1, x2, y2 as shares of the image, (R, 4).
        margin: how far a box may leave the image, as a share of the image.

    Returns:
        Its index, or None when all boxes are valid. A box without area is valid.
    """
    inside = (boxes >= -margin).all(1) & (boxes <= 1 + margin).all(1)  # False for NaN
    ordered = (boxes[:, :2] <= boxes[:, 2:]).all(1)
    invalid = np.flatnonzero(~(inside & ordered))
    return int(invalid[0]) if len(invalid) else None


def read_box(values: Sequence[float], source: str) -> Box:
    """x, y, width and height as in COCO; a detector's confidence may follow.

    Args:
        values: the values in the file.
        source: the annotation or image that the box belongs to, for messages.

    Raises:
        ValueError: when the values are not numbers of pixels, or width or height is negative.
    """
    if not (is_corners(values) and min(values[2:4]) >= 0):
        raise ValueError(
            f'the box of {source} is {shorten(values)}, expected x, y, width and height in pixels, '
            'where width and height are not negative'
        )
    return [float(value) for value in values[:4]]


def is_corners(values: object) -> bool:
    """Whether values begin with four numbers that can be pixels of an image."""
    return (
        isinstance(values, list)
        and len(values) >= 4
        and all(is_number(value) and abs(value) <= MAX_SIDE for value in values)
    )


def has_area(box: Box) -> bool:
    """Whether a box can be scored; COCO has a few boxes without area."""
    return box[2] > 0 and box[3] > 0
