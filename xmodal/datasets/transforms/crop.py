"""Windows of an image."""

import random

import torch
from mmcv.transforms import BaseTransform

from xmodal.registry import TRANSFORMS


@TRANSFORMS.register_module()
class CropObject(BaseTransform):
    """Cuts out a square window around a thing: ``img`` (3, H, W) becomes (3, size, size).

    Past the edges of the image its outermost pixels go on.

    Args:
        size: side of the window, in pixels.
        shift: the window's middle is drawn so many pixels from the box's, at most, each way.
    """

    def __init__(self, size: int, shift: int) -> None:
        self.size, self.shift = size, shift

    def transform(self, results: dict) -> dict:
        """Changes ``img``; ``box`` is x, y, width and height in pixels."""
        x, y, width, height = results['box']
        left, top = (
            round(start + extent / 2 + random.uniform(-self.shift, self.shift) - self.size / 2)
            for start, extent in ((x, width), (y, height))
        )
        rows, columns = (
            torch.arange(first, first + self.size).clamp(0, extent - 1)
            for first, extent in zip((top, left), results['img'].shape[1:], strict=True)
        )
        results['img'] = results['img'][:, rows[:, None], columns]
        return results
