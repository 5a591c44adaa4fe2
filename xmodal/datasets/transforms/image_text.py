"""From a path and a text to pixels and a data sample."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
import torch
from mmcv.transforms import BaseTransform
from torch import Tensor
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional

from xmodal.registry import TRANSFORMS
from xmodal.structures import DataSample

_JPEG_START, _JPEG_END = b'\xff\xd8', b'\xff\xd9'
_SIDES = re.compile(r'\b(left|right)(most|ward|wards|hand)?\b')


class BrokenImageError(OSError):
    """An image that can't be read or decoded."""


@TRANSFORMS.register_module()
class LoadImage(BaseTransform):
    """Decodes ``img_bytes``, or the file ``img_path``, into ``img``: uint8, RGB, (3, H, W).

    Raises:
        BrokenImageError: when the file is missing, breaks off or is no image.
    """

    def transform(self, results: dict) -> dict:
        """Adds ``img``."""
        path, content = results['img_path'], results.get('img_bytes')
        if content is None:
            try:
                content = Path(path).read_bytes()
            except OSError as error:
                raise BrokenImageError(f'{path}: {error.strerror or error}') from error
        if content.startswith(_JPEG_START) and _JPEG_END not in content[len(content) // 2 :]:
            # OpenCV would fill what is missing with grey and say nothing.
            raise BrokenImageError(f'{path}: the JPEG file breaks off')
        pixels = np.frombuffer(content, np.uint8)
        image = cv2.imdecode(pixels, cv2.IMREAD_COLOR) if len(pixels) else None
        if image is None:
            raise BrokenImageError(f'{path}: not an image that OpenCV can decode')
        rgb = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        results['img'] = torch.from_numpy(rgb).permute(2, 0, 1).contiguous()
        return results


@TRANSFORMS.register_module()
class ResizeImage(BaseTransform):
    """Squashes the image to a square, bicubic, as ALBEF does in tests.

    Args:
        size: side, in pixels.
    """

    def __init__(self, size: int) -> None:
        self._resize = v2.Resize((size, size), InterpolationMode.BICUBIC, antialias=True)

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        results['img'] = self._resize(results['img'])
        return results


@TRANSFORMS.register_module()
class RandomFlip(BaseTransform):
    """Mirrors the image half of the time, unless the caption speaks of left or right.

    Args:
        probability: of a flip, where one is allowed.
    """

    def __init__(self, probability: float = 0.5) -> None:
        self.probability = probability

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        if not _SIDES.search(results['text']) and torch.rand(()) < self.probability:
            results['img'] = results['img'].flip(-1)
        return results


@TRANSFORMS.register_module()
class Augment(BaseTransform):
    """Random resized crop, bicubic, then ALBEF's RandAugment.

    RandAugment draws ``num_ops`` of ten operations and applies each with probability 1/2. None
    changes a hue, since captions name colours. Mirroring is :class:`RandomFlip`.

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
        share = magnitude / 10
        tone, shear = 0.1 + 1.8 * share, math.degrees(math.atan(0.3 * share))
        # ALBEF moves by pixels, whatever the image's size.
        shift, turn = 10 * share, 30 * share
        self._operations: list[Callable[[Tensor, float], Tensor]] = [
            lambda image, sign: image,
            lambda image, sign: functional.autocontrast(image),
            lambda image, sign: functional.equalize(image),
            lambda image, sign: functional.adjust_brightness(image, tone),
            lambda image, sign: functional.adjust_sharpness(image, tone),
            lambda image, sign: _warp(image, shear=[sign * shear, 0]),
            lambda image, sign: _warp(image, shear=[0, sign * shear]),
            lambda image, sign: _warp(image, translate=[sign * shift, 0]),
            lambda image, sign: _warp(image, translate=[0, sign * shift]),
            lambda image, sign: _warp(image, angle=sign * turn),
        ]
        self._num_ops = num_ops

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        image = self._crop(results['img'])
        for number in torch.randint(len(self._operations), (self._num_ops,)).tolist():
            applied, positive = (torch.rand(2) < 0.5).tolist()
            if applied:
                image = self._operations[number](image, 1 if positive else -1)
        results['img'] = image
        return results


def _warp(
    image: Tensor,
    angle: float = 0,
    translate: Sequence[float] = (0, 0),
    shear: Sequence[float] = (0, 0),
) -> Tensor:
    """An affine map that leaves grey where nothing is; degrees and pixels."""
    return functional.affine(
        image, angle, list(translate), 1.0, list(shear), InterpolationMode.BILINEAR, fill=[128.0]
    )


@TRANSFORMS.register_module()
class PackImageText(BaseTransform):
    """Ends a pipeline: ``inputs`` and ``data_samples`` out of the results."""

    def transform(self, results: dict) -> dict:
        """``dict(inputs=uint8 (3, H, W), data_samples=DataSample)``."""
        sample = DataSample(
            metainfo={
                'image_path': results['img_path'],
                'sample_index': results['sample_index'],
                'skipped': results.get('skipped', []),
            }
        )
        sample.image_id, sample.text = results['image_id'], results['text']
        return {'inputs': results['img'], 'data_samples': sample}
