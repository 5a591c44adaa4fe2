"""Decoding images."""

from pathlib import Path

import cv2
import numpy as np
import torch
from mmcv.transforms import BaseTransform

from xmodal.registry import TRANSFORMS

_JPEG_START, _JPEG_END = b'\xff\xd8', b'\xff\xd9'


class BrokenImageError(OSError):
    """An image that cannot be read or decoded."""


@TRANSFORMS.register_module()
class LoadImage(BaseTransform):
    """Decodes ``img_bytes``, or the file ``img_path``, into ``img``: uint8, RGB, (3, H, W).

    Raises:
        BrokenImageError: when the file is missing, truncated or not an image.
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
            # OpenCV 4 fills the missing part with grey without a warning.
            raise BrokenImageError(f'{path}: the JPEG file is truncated')
        encoded = np.frombuffer(content, np.uint8)
        image = cv2.imdecode(encoded, cv2.IMREAD_COLOR) if len(encoded) else None
        if image is None:
            raise BrokenImageError(f'{path}: not an image that OpenCV can decode')
        rgb = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        # The memory layout of OpenCV is kept: torchvision resizes it faster than planes.
        results['img'] = torch.from_numpy(rgb).permute(2, 0, 1)
        return results
