"""Predicted boxes drawn on images."""

from collections.abc import Sequence

import cv2
import numpy as np

from xmodal.visualization.figures import overlay_heatmap

PREDICTED, TRUE, INK, PAPER = (235, 60, 50), (60, 200, 90), (30, 30, 30), (255, 255, 255)
MIN_SIDE = 384  # smaller images are enlarged, so that the text is legible


def draw_grounding(
    image: np.ndarray,
    heat: np.ndarray,
    predicted: Sequence[float],
    truth: Sequence[float],
    text: str,
) -> np.ndarray:
    """Draws a heat map, the true box (green), the predicted box (red) and the text below.

    Args:
        image: RGB (H, W, 3), uint8.
        heat: (h, w), at the resolution of the annotations, which the image need not have.
        predicted: x, y, width and height of the predicted box, in pixels of the heat map.
        truth: the true box, in the same form.
        text: the expression.

    Returns:
        RGB, uint8.
    """
    drawing = overlay_heatmap(image, heat.clip(min=0))
    scale = max(1.0, MIN_SIDE / min(drawing.shape[:2]))
    drawing = cv2.resize(drawing, None, fx=scale, fy=scale, interpolation=cv2.INTER_NEAREST)
    scale_y, scale_x = np.divide(drawing.shape[:2], heat.shape)
    for box, colour in ((truth, TRUE), (predicted, PREDICTED)):
        scales = (scale_x, scale_y) * 2
        x, y, width, height = (round(n * s) for n, s in zip(box, scales, strict=True))
        # If both boxes are equal, the predicted one is drawn inside the true one.
        inset = 3 if colour == PREDICTED else 0
        start, end = (x + inset, y + inset), (x + width - 1 - inset, y + height - 1 - inset)
        cv2.rectangle(drawing, start, end, colour, thickness=2)
    caption = np.full((28, drawing.shape[1], 3), PAPER, np.uint8)
    cv2.putText(caption, text, (6, 19), cv2.FONT_HERSHEY_SIMPLEX, 0.45, INK, 1, cv2.LINE_AA)
    return np.vstack([drawing, caption])
