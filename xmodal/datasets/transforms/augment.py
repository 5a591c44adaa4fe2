"""ALBEF's image augmentation."""

from collections.abc import Callable
from functools import partial

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
    them changes a hue, since captions name colours. For flips, use :class:`RandomFlip`.

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
        # Of each operation the library that is faster: OpenCV's filters and affine maps take a
        # quarter of torchvision's time.
        self._color_ops = [
            nn.Identity(),
            functional.autocontrast,
            functional.equalize,
            partial(functional.adjust_brightness, brightness_factor=factor),
            partial(_by_opencv, mmcv.adjust_sharpness, factor=factor),
        ]
        # ALBEF translates by a number of pixels, independent of the size of the image.
        shear, shift, angle = 0.3 * strength, 10 * strength, 30 * strength
        self._affine_ops = [
            partial(_map, mmcv.imshear, shear, direction='horizontal'),
            partial(_map, mmcv.imshear, shear, direction='vertical'),
            partial(_map, mmcv.imtranslate, shift, direction='horizontal'),
            partial(_map, mmcv.imtranslate, shift, direction='vertical'),
            partial(_map, mmcv.imrotate, angle),
        ]
        self._num_ops = num_ops

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        image = self._crop(results['img'])
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


def _map(function: Callable, amount: float, image: Tensor, sign: int, **options) -> Tensor:
    """An affine map by an amount with a sign; empty areas become grey."""
    return _by_opencv(function, image, sign * amount, border_value=(128, 128, 128), **options)


def _by_opencv(function: Callable, image: Tensor, *arguments: float, **options) -> Tensor:
    """A function of mmcv on (3, H, W), whose memory is OpenCV's (H, W, 3) already (LoadImage)."""
    array = np.ascontiguousarray(image.permute(1, 2, 0).numpy())
    return torch.from_numpy(function(array, *arguments, **options)).permute(2, 0, 1)
