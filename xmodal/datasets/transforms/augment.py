"""ALBEF's image augmentation, and BEiT's colours."""

from collections.abc import Callable
from functools import partial

import cv2
import mmcv
import numpy as np
import torch
from mmcv.transforms import BaseTransform
from torch import Tensor, nn
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional

from xmodal.registry import TRANSFORMS


@TRANSFORMS.register_module()
class AlbefAugment(BaseTransform):
    """Random resized crop, bicubic, followed by ALBEF's RandAugment.

    RandAugment samples ``num_ops`` of ten operations and applies each with probability 1/2. None of
    them moves hues on purpose, since captions name colours, but equalize and autocontrast stretch
    each channel by itself, as ALBEF's do. For flips, use :class:`RandomFlip`.

    Args:
        size: side of the result, in pixels.
        scale: smallest and largest share of the image that a crop covers.
        num_ops: N of RandAugment; 0 for none.
        magnitude: M of RandAugment, of 10.
    """

    def __init__(
        self,
        size: int,
        scale: tuple[float, float] = (0.2, 1.0),
        num_ops: int = 2,
        magnitude: int = 7,
    ) -> None:
        self._crop = v2.RandomResizedCrop(
            size, scale, interpolation=InterpolationMode.BICUBIC, antialias=True
        )
        strength = magnitude / 10
        factor = 0.1 + 1.8 * strength
        # OpenCV's filters and affine maps take a quarter of torchvision's time, and its tables of
        # 256 values a tenth.
        values = torch.arange(256, dtype=torch.uint8).expand(3, 1, 256)
        brighter = functional.adjust_brightness(values, factor)[0, 0].numpy()
        self._color_ops = [
            nn.Identity(),
            partial(_by_opencv, autocontrast),
            partial(_by_opencv, equalize),
            partial(_by_opencv, partial(cv2.LUT, lut=brighter)),
            partial(_by_opencv, mmcv.adjust_sharpness, factor=factor),
        ]
        # ALBEF translates by a number of pixels, independent of the size of the image.
        shear, shift, angle = 0.3 * strength, round(10 * strength), 30 * strength
        self._affine_ops = [
            partial(_map, mmcv.imshear, shear, direction='horizontal'),
            partial(_map, mmcv.imshear, shear, direction='vertical'),
            partial(_map, translate, shift, direction='horizontal'),
            partial(_map, translate, shift, direction='vertical'),
            partial(_map, mmcv.imrotate, angle),
        ]
        self._num_ops = num_ops

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        image = self._random_crop(results['img'])
        num_color_ops = len(self._color_ops)
        num_ops = num_color_ops + len(self._affine_ops)
        for op in torch.randint(num_ops, (self._num_ops,)).tolist():
            is_applied, is_positive = (torch.rand(2) < 0.5).tolist()
            if not is_applied:
                continue
            if op < num_color_ops:
                image = self._color_ops[op](image)
            else:
                image = self._affine_ops[op - num_color_ops](image, sign=1 if is_positive else -1)
        results['img'] = image
        return results

    def _random_crop(self, image: Tensor) -> Tensor:
        """What RandomResizedCrop does. A part that is dense in memory is resized much faster."""
        where = self._crop.make_params([image])
        part = functional.crop(image, **where).permute(1, 2, 0).contiguous().permute(2, 0, 1)
        return functional.resize(part, self._crop.size, self._crop.interpolation, antialias=True)


@TRANSFORMS.register_module()
class ColorJitter(BaseTransform):
    """Multiplies brightness, contrast and saturation by random factors, in random order.

    In the pre-training of BEiT each is 0.4. Hues stay.

    Args:
        brightness: b, for a factor between 1 − b and 1 + b.
        contrast: likewise.
        saturation: likewise.
    """

    def __init__(self, brightness: float, contrast: float, saturation: float) -> None:
        self._jitter = v2.ColorJitter(brightness, contrast, saturation)

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        results['img'] = self._jitter(results['img'])
        return results


def autocontrast(image: np.ndarray) -> np.ndarray:
    """Stretches the values of each channel of (H, W, 3) to 0 … 255, as torchvision does."""
    table = np.empty((1, 256, 3), np.uint8)
    values = np.arange(256, dtype=np.float32)
    for channel, counts in enumerate(histograms(image)):
        low, high = np.flatnonzero(counts)[[0, -1]].astype(np.float32)
        stretched = (values - low) / ((high - low) * np.float32(1 / 255)) if low < high else values
        table[0, :, channel] = stretched.clip(0, 255)
    return cv2.LUT(image, table)


def equalize(image: np.ndarray) -> np.ndarray:
    """Flattens the histogram of each channel of (H, W, 3), as torchvision does."""
    table = np.empty((1, 256, 3), np.uint8)
    for channel, counts in enumerate(histograms(image)):
        largest = np.flatnonzero(counts)[-1]
        step = (counts.sum() - counts[largest]) // 255
        before = np.cumsum(counts) - counts
        flat = (before + step // 2) // step if step else np.arange(256)
        table[0, :, channel] = flat.clip(0, 255)
    return cv2.LUT(image, table)


def translate(
    image: np.ndarray, shift: int, direction: str, border_value: tuple[int, int, int]
) -> np.ndarray:
    """Moves (H, W, 3) by whole pixels; ``mmcv.imtranslate`` takes a hundred times as long."""
    axis = 1 if direction == 'horizontal' else 0
    moved = np.roll(image, shift, axis)
    moved.swapaxes(0, axis)[slice(shift) if shift >= 0 else slice(shift, None)] = border_value
    return moved


def histograms(image: np.ndarray) -> list[np.ndarray]:
    """How often each value occurs, (256,), in each of the three channels."""
    counts = (cv2.calcHist([image], [channel], None, [256], [0, 256]) for channel in range(3))
    return [count.ravel().astype(np.int64) for count in counts]


def _map(function: Callable, amount: float, image: Tensor, sign: int, **options) -> Tensor:
    """An affine map by an amount with a sign; empty areas become grey."""
    grey = (128, 128, 128)
    return _by_opencv(function, image, sign * amount, border_value=grey, **options)


def _by_opencv(function: Callable, image: Tensor, *arguments: float, **options) -> Tensor:
    """A function of arrays on (3, H, W), whose memory is OpenCV's (H, W, 3) already (LoadImage)."""
    array = np.ascontiguousarray(image.permute(1, 2, 0).numpy())
    return torch.from_numpy(function(array, *arguments, **options)).permute(2, 0, 1)
