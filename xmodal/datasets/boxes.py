"""Boxes: which of them are boxes at all."""

import math
from collections.abc import Sequence

import numpy as np

Box = list[float]  # x, y, width, height, in pixels


def find_wrong_box(boxes: np.ndarray, margin: float) -> int | None:
    """The first box that does not lie in its image, ends before it begins, or is no number.

    Args:
        boxes: x1, y1, x2, y2 as shares of the image, (R, 4).
        margin: that one may leave the image by, as a share of it.

    Returns:
        Its place; None when all are right. A box without area is.
    """
    inside = (boxes >= -margin).all(1) & (boxes <= 1 + margin).all(1)  # NaN is not
    upright = (boxes[:, :2] <= boxes[:, 2:]).all(1)
    wrong = np.flatnonzero(~(inside & upright))
    return int(wrong[0]) if len(wrong) else None


def read_box(numbers: Sequence[float], owner: str) -> Box:
    """x, y, width and height as COCO has them; a detector's confidence may follow.

    Args:
        numbers: what a file has.
        owner: whose box it is, for messages.

    Raises:
        ValueError: when these are no numbers, or width or height is negative.
    """
    x, y, width, height = box = [float(number) for number in numbers[:4]]
    if not all(map(math.isfinite, box)) or width < 0 or height < 0:
        raise ValueError(
            f'the box of {owner} is {list(numbers)}, expected x, y, width and height, the last two '
            'from 0'
        )
    return box


def has_area(box: Box) -> bool:
    """Whether a box can be scored; COCO has a few that can't."""
    return box[2] > 0 and box[3] > 0
