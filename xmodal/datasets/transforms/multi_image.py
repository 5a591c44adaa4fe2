"""Samples of several images, and several views of one image."""

from mmcv.transforms import BaseTransform

from xmodal.datasets.collate import stack_pixels
from xmodal.datasets.transforms.packing import build_pipeline
from xmodal.registry import TRANSFORMS


@TRANSFORMS.register_module()
class ForEachImage(BaseTransform):
    """Applies transforms to each of ``img_paths`` and stacks the results to ``img``, (K, 3, H, W).

    ``imgs_bytes`` has their contents where they are no files, or is missing.

    Args:
        transforms: from ``img_path`` to ``img``, with the same size for all images. Each image gets
            all other results; changes of them are dropped.
    """

    def __init__(self, transforms: list[dict]) -> None:
        self.pipeline = build_pipeline(transforms)

    def transform(self, results: dict) -> dict:
        """Adds ``img``.

        Raises:
            ValueError: when the transformed images of the sample have different sizes.
        """
        paths = results['img_paths']
        contents = results.get('imgs_bytes') or [None] * len(paths)
        images = [
            self.pipeline({**results, 'img_path': path, 'img_bytes': content})['img']
            for path, content in zip(paths, contents, strict=True)
        ]
        if len(shapes := {tuple(image.shape) for image in images}) > 1:
            raise ValueError(
                f'the images of a sample have different shapes {sorted(shapes)}: end '
                'ForEachImage.transforms with AlbefAugment or ResizeImage'
            )
        results['img'] = stack_pixels(images)
        return results


@TRANSFORMS.register_module()
class TwoViews(BaseTransform):
    """Two views of an image, for a student and its teacher, with different random choices.

    ``img`` (3, H, W) becomes (2, 3, H', W').

    Args:
        transforms: from ``img`` to ``img``, with the same size for both views.
        teacher_transforms: those of the teacher's view; None for the same.
    """

    def __init__(
        self, transforms: list[dict], teacher_transforms: list[dict] | None = None
    ) -> None:
        other = transforms if teacher_transforms is None else teacher_transforms
        self.pipelines = [build_pipeline(transforms), build_pipeline(other)]

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        views = [pipeline(dict(results))['img'] for pipeline in self.pipelines]
        results['img'] = stack_pixels(views)
        return results
