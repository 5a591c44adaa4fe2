"""Samples with several images."""

import torch
from mmcv.transforms import BaseTransform

from xmodal.datasets.transforms.image_text import build_pipeline
from xmodal.registry import TRANSFORMS


@TRANSFORMS.register_module()
class ForEachImage(BaseTransform):
    """From ``img_paths`` to ``img``, (K, 3, H, W): transforms that each image goes through alone.

    Args:
        transforms: from ``img_path`` to ``img``, all of one size in the end; other results are
            handed to each, what a transform does to them is not.
    """

    def __init__(self, transforms: list[dict]) -> None:
        self.pipeline = build_pipeline(transforms)

    def transform(self, results: dict) -> dict:
        """Adds ``img``.

        Raises:
            ValueError: when the images of the sample end up with different sizes.
        """
        images = [
            self.pipeline({**results, 'img_path': path})['img'] for path in results['img_paths']
        ]
        if len(sizes := {tuple(image.shape) for image in images}) > 1:
            raise ValueError(
                f'the images of a sample have different shapes {sorted(sizes)}: end '
                'ForEachImage.transforms with AlbefAugment or ResizeImage'
            )
        results['img'] = torch.stack(images)
        return results


@TRANSFORMS.register_module()
class SplitImage(BaseTransform):
    """Cuts one image into upright windows: ``img`` (3, H, W) becomes (K, 3, H, W').

    The windows stand evenly from the left edge to the right; they may leave gaps or overlap.
    NLVR's three boxes are ``parts=3, share=0.25``, two halves ``parts=2, share=0.5``.

    Args:
        parts: K.
        share: width of a window, of the image's.
    """

    def __init__(self, parts: int, share: float) -> None:
        self.parts, self.share = parts, share

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        width = results['img'].shape[-1]
        side = round(width * self.share)
        starts = torch.linspace(0, width - side, self.parts).round().int().tolist()
        results['img'] = torch.stack(
            [results['img'][..., start : start + side] for start in starts]
        )
        return results
