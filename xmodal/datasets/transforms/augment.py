"""ALBEF's image augmentation."""

import math
from functools import partial

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
        factor, shear = 0.1 + 1.8 * strength, math.degrees(math.atan(0.3 * strength))
        # ALBEF translates by a number of pixels, independent of the size of the image.
        shift, angle = 10 * strength, 30 * strength
        self._color_ops = [
            nn.Identity(),
            functional.autocontrast,
            functional.equalize,
            partial(functional.adjust_brightness, brightness_factor=factor),
            partial(functional.adjust_sharpness, sharpness_factor=factor),
        ]
        self._affine_ops = [
            partial(_affine, shear=(shear, 0)),
            partial(_affine, shear=(0, shear)),
            partial(_affine, translate=(shift, 0)),
            partial(_affine, translate=(0, shift)),
            partial(_affine, angle=angle),
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


def _affine(
    image: Tensor,
    sign: int,
    angle: float = 0,
    translate: tuple[float, float] = (0, 0),
    shear: tuple[float, float] = (0, 0),
) -> Tensor:
    """An affine map in degrees and pixels with a sign; empty areas become grey."""
    return functional.affine(
        image,
        sign * angle,
        [sign * pixels for pixels in translate],
        scale=1.0,
        shear=[sign * degrees for degrees in shear],
        interpolation=InterpolationMode.BILINEAR,
        fill=[128.0],
    )
