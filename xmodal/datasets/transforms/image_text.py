"""From a path and a text to pixels and a data sample."""

import re
from pathlib import Path

import cv2
import numpy as np
import torch
from mmcv.transforms import BaseTransform
from torchvision.transforms import InterpolationMode, v2

from xmodal.registry import TRANSFORMS
from xmodal.structures import DataSample

_SIDES = re.compile(r'\b(left|right)(most|ward|wards|hand)?\b')


class BrokenImageError(OSError):
    """An image that can't be read or decoded."""


@TRANSFORMS.register_module()
class LoadImage(BaseTransform):
    """Reads ``img_path`` with OpenCV into ``img``, a uint8 RGB tensor (3, H, W).

    Raises:
        BrokenImageError: when the file is missing or is no image.
    """

    def transform(self, results: dict) -> dict:
        """Adds ``img``."""
        content = results.get('img_bytes')
        if content is None:
            try:
                content = Path(results['img_path']).read_bytes()
            except OSError as error:
                raise BrokenImageError(error.strerror or str(error)) from error
        pixels = np.frombuffer(content, np.uint8)
        image = cv2.imdecode(pixels, cv2.IMREAD_COLOR) if len(pixels) else None
        if image is None:
            raise BrokenImageError('not an image that OpenCV can decode')
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

    RandAugment draws ``num_ops`` of the operations below and applies each with probability 1/2.
    They change no hue, since captions name colours. Mirroring is :class:`RandomFlip`.

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
        shear, shift = np.degrees(np.arctan(0.3 * share)), 0.45 * share
        tone = (1 - 0.9 * share, 1 + 0.9 * share)
        operations = [
            v2.Identity(),
            v2.RandomAutocontrast(p=1),
            v2.RandomEqualize(p=1),
            v2.ColorJitter(brightness=tone),
            v2.RandomAdjustSharpness(1 + 0.9 * share, p=1),
            v2.RandomAffine(0, shear=(-shear, shear, 0, 0)),
            v2.RandomAffine(0, shear=(0, 0, -shear, shear)),
            v2.RandomAffine(0, translate=(shift, 0)),
            v2.RandomAffine(0, translate=(0, shift)),
            v2.RandomAffine(30 * share),
        ]
        self._operations = [v2.RandomApply([operation], p=0.5) for operation in operations]
        self._num_ops = num_ops

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        image = self._crop(results['img'])
        for number in torch.randint(len(self._operations), (self._num_ops,)).tolist():
            image = self._operations[number](image)
        results['img'] = image
        return results


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
