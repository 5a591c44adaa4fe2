"""Predicted boxes on pictures."""

from collections.abc import Sequence

import cv2
import numpy as np

from xmodal.visualization.figures import lay_over

FOUND, TRUE, INK, PAPER = (235, 60, 50), (60, 200, 90), (30, 30, 30), (255, 255, 255)
LEAST_SIDE = 384  # smaller pictures are made larger, so that the text can be read


def draw_grounding(
    image: np.ndarray,
    heat: np.ndarray,
    found: Sequence[float],
    truth: Sequence[float],
    text: str,
) -> np.ndarray:
    """The heat over a picture, the true box in green, the found one in red, the text below.

    Args:
        image: RGB (H, W, 3), uint8.
        heat: (h, w), of the size that boxes are annotated in; the picture may have another.
        found: x, y, width and height of the chosen box, in pixels of the heat.
        truth: of the true box.
        text: the expression.

    Returns:
        RGB, uint8.
    """
    picture = lay_over(image, heat.clip(min=0))
    scale = max(1.0, LEAST_SIDE / min(picture.shape[:2]))
    picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_NEAREST)
    high, wide = np.divide(picture.shape[:2], heat.shape)
    for box, colour in ((truth, TRUE), (found, FOUND)):
        x, y, width, height = (round(n * s) for n, s in zip(box, (wide, high) * 2, strict=True))
        # The found one within the true one, where both are the same.
        inset = 3 if colour == FOUND else 0
        start, end = (x + inset, y + inset), (x + width - 1 - inset, y + height - 1 - inset)
        cv2.rectangle(picture, start, end, colour, thickness=2)
    margin = np.full((28, picture.shape[1], 3), PAPER, np.uint8)
    cv2.putText(margin, text, (6, 19), cv2.FONT_HERSHEY_SIMPLEX, 0.45, INK, 1, cv2.LINE_AA)
    return np.vstack([picture, margin])
