"""From a path and a text to pixels and a data sample."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import torch
from mmcv.transforms import BaseTransform, Compose
from torch import Tensor, nn
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
            # OpenCV 4 fills what is missing with grey and says nothing.
            raise BrokenImageError(f'{path}: the JPEG file breaks off')
        pixels = np.frombuffer(content, np.uint8)
        image = cv2.imdecode(pixels, cv2.IMREAD_COLOR) if len(pixels) else None
        if image is None:
            raise BrokenImageError(f'{path}: not an image that OpenCV can decode')
        rgb = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        # Left as OpenCV has it in memory: torchvision resizes that faster than planes.
        results['img'] = torch.from_numpy(rgb).permute(2, 0, 1)
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
    """Mirrors the image half of the time, unless the text or an answer speaks of left or right.

    Args:
        probability: of a flip, where one is allowed.
    """

    def __init__(self, probability: float = 0.5) -> None:
        self.probability = probability

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        said = ' '.join([results['text'], *results.get('answers', ())])
        if not _SIDES.search(said) and torch.rand(()) < self.probability:
            results['img'] = results['img'].flip(-1)
        return results


@TRANSFORMS.register_module()
class AlbefAugment(BaseTransform):
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
        self._tones = [
            nn.Identity(),
            functional.autocontrast,
            functional.equalize,
            partial(functional.adjust_brightness, brightness_factor=tone),
            partial(functional.adjust_sharpness, sharpness_factor=tone),
        ]
        self._moves = [
            partial(_warp, shear=(shear, 0)),
            partial(_warp, shear=(0, shear)),
            partial(_warp, translate=(shift, 0)),
            partial(_warp, translate=(0, shift)),
            partial(_warp, angle=turn),
        ]
        self._num_ops = num_ops

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        image = self._crop(results['img'])
        tones = len(self._tones)
        for number in torch.randint(tones + len(self._moves), (self._num_ops,)).tolist():
            applied, forward = (torch.rand(2) < 0.5).tolist()
            if not applied:
                continue
            if number < tones:
                image = self._tones[number](image)
            else:
                image = self._moves[number - tones](image, sign=1 if forward else -1)
        results['img'] = image
        return results


def _warp(
    image: Tensor,
    sign: int,
    angle: float = 0,
    translate: tuple[float, float] = (0, 0),
    shear: tuple[float, float] = (0, 0),
) -> Tensor:
    """An affine map one way or the other, grey where nothing is; degrees and pixels."""
    return functional.affine(
        image,
        sign * angle,
        [sign * pixels for pixels in translate],
        scale=1.0,
        shear=[sign * degrees for degrees in shear],
        interpolation=InterpolationMode.BILINEAR,
        fill=[128.0],
    )


@TRANSFORMS.register_module()
class PackImageText(BaseTransform):
    """Ends a pipeline: ``inputs`` and ``data_samples`` out of the results.

    Args:
        fields: further results that the data sample takes over, ``('label',)``.
    """

    source = 'img'  # what becomes ``inputs``

    def __init__(self, fields: Sequence[str] = ()) -> None:
        self.fields = ('image_id', 'text', *fields)

    def transform(self, results: dict) -> dict:
        """``dict(inputs=uint8 (3, H, W), data_samples=DataSample)``."""
        sample = DataSample(
            metainfo={
                'image_path': results['img_path'],
                'sample_index': results['sample_index'],
                'skipped': results.get('skipped', []),
            }
        )
        for field in self.fields:
            sample.set_field(results[field], field)
        return {'inputs': results[self.source], 'data_samples': sample}


def build_pipeline(transforms: Iterable[dict | Callable]) -> Compose:
    """One transform out of several, each a config of ``TRANSFORMS`` or any callable."""
    built = [TRANSFORMS.build(t) if isinstance(t, dict) else t for t in transforms]
    return Compose(built)
