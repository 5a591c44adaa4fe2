"""Decoding images."""

import torch
from mmcv.transforms import BaseTransform

from xmodal.datasets.image_file import MAX_PIXELS, decode_image, read_image_bytes
from xmodal.registry import TRANSFORMS


@TRANSFORMS.register_module()
class LoadImage(BaseTransform):
    """Decodes ``img_bytes``, or the file ``img_path``, into ``img``: uint8, RGB, (3, H, W).

    Args:
        max_pixels: an image with more pixels counts as broken.

    Raises:
        BrokenImageError: when the file is missing, truncated, too large or not an image.
    """

    def __init__(self, max_pixels: int = MAX_PIXELS) -> None:
        self.max_pixels = max_pixels

    def transform(self, results: dict) -> dict:
        """Adds ``img``."""
        path, content = results['img_path'], results.get('img_bytes')
        if content is None:
            content = read_image_bytes(path)
        image = decode_image(content, path, self.max_pixels)
        # The memory layout of OpenCV is kept: torchvision resizes it faster than planes.
        results['img'] = torch.from_numpy(image).permute(2, 0, 1)
        return results
