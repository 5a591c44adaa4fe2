"""Resizing, flipping, cropping and splitting of an image."""

import random
import re

import torch
from mmcv.transforms import BaseTransform
from torchvision.transforms import InterpolationMode, v2

from xmodal.datasets.image_file import BrokenImageError
from xmodal.registry import TRANSFORMS

_SIDES = re.compile(r'\b(left|right)(most|ward|wards|hand)?\b', re.IGNORECASE)


@TRANSFORMS.register_module()
class ResizeImage(BaseTransform):
    """Resizes the image, bicubic, without keeping its aspect ratio, as ALBEF does in tests.

    Args:
        size: side of a square, or height and width, in pixels.
    """

    def __init__(self, size: int | tuple[int, int]) -> None:
        size = (size, size) if isinstance(size, int) else tuple(size)
        self._resize = v2.Resize(size, InterpolationMode.BICUBIC, antialias=True)

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        results['img'] = self._resize(results['img'])
        return results


@TRANSFORMS.register_module()
class RandomFlip(BaseTransform):
    """Flips the image horizontally, unless the text or an answer mentions left or right.

    Args:
        probability: probability of a flip where it is allowed.
    """

    def __init__(self, probability: float = 0.5) -> None:
        self.probability = probability

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        words = ' '.join([results['text'], *results.get('answers', ())])
        if not _SIDES.search(words) and torch.rand(()) < self.probability:
            results['img'] = results['img'].flip(-1)
        return results


@TRANSFORMS.register_module()
class CropBox(BaseTransform):
    """Cuts the image to its ``box``: ``img`` (3, H, W) becomes (3, height, width).

    What of the box is beyond the edges is left out.

    Raises:
        BrokenImageError: when all of it is.
    """

    def transform(self, results: dict) -> dict:
        """Changes ``img``; ``box`` is x, y, width and height, whole pixels."""
        x, y, width, height = results['box']
        cropped = results['img'][:, max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)]
        if not cropped.numel():
            raise BrokenImageError(
                f'{results["img_path"]} has {tuple(results["img"].shape[1:])} pixels, and its box '
                f'{results["box"]} (x, y, width, height) is beyond them'
            )
        results['img'] = cropped
        return results


@TRANSFORMS.register_module()
class CropObject(BaseTransform):
    """Crops a square window around an object: ``img`` (3, H, W) becomes (3, size, size).

    Beyond the edges of the image its outermost pixels are repeated.

    Args:
        size: side of the window, in pixels.
        shift: largest random distance between the centres of window and box on each axis, in
            pixels.
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


@TRANSFORMS.register_module()
class SplitImage(BaseTransform):
    """Splits an image into windows of its full height: ``img`` (3, H, W) becomes (K, 3, H, W').

    The windows are evenly spaced from the left edge to the right; they may leave gaps or overlap.
    NLVR's three boxes are ``parts=3, share=0.25``, two halves are ``parts=2, share=0.5``.

    Args:
        parts: K.
        share: width of a window as a share of the image's width.
    """

    def __init__(self, parts: int, share: float) -> None:
        self.parts, self.share = parts, share

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        width = results['img'].shape[-1]
        side = max(round(width * self.share), 1)
        starts = torch.linspace(0, width - side, self.parts).round().int().tolist()
        results['img'] = torch.stack(
            [results['img'][..., start : start + side] for start in starts]
        )
        return results
