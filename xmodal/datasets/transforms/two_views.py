"""Two views of one image."""

import torch
from mmcv.transforms import BaseTransform

from xmodal.datasets.transforms.image_text import build_pipeline
from xmodal.registry import TRANSFORMS


@TRANSFORMS.register_module()
class TwoViews(BaseTransform):
    """Sends the image through the same transforms twice, each time with draws of its own.

    ``img`` (3, H, W) becomes (2, 3, H', W'): a student's view and its teacher's.

    Args:
        transforms: from ``img`` to ``img``, all of one size in the end.
    """

    def __init__(self, transforms: list[dict]) -> None:
        self.pipeline = build_pipeline(transforms)

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        results['img'] = torch.stack([self.pipeline(dict(results))['img'] for _ in range(2)])
        return results
