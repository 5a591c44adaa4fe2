"""Collate functions: from a list of samples to a batch."""

from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

from xmodal.registry import FUNCTIONS
from xmodal.structures import ObjectLabels, Regions


def stack_pixels(images: Sequence[torch.Tensor]) -> torch.Tensor:
    """``torch.stack`` of images (…, 3, H, W) in the memory layout of the first one.

    Most have that of OpenCV (LoadImage), pixel by pixel. Copied as they are, and brought to planes
    when the batch is normalised, they take a tenth of the time.
    """
    pixels = [image.movedim(-3, -1) for image in images]
    if pixels[0].is_contiguous():
        return torch.stack(pixels).movedim(-1, -3)
    return torch.stack(list(images))


@FUNCTIONS.register_module()
def stack_images(samples: list[dict]) -> dict:
    """Stacks the images to one tensor; the data samples stay a list.

    One tensor is sent from a worker process many times faster than one tensor per image.

    Args:
        samples: dicts of ``inputs``, uint8 (3, H, W), and ``data_samples``.

    Returns:
        ``dict(inputs=uint8 (B, 3, H, W), data_samples=list)``.

    Raises:
        ValueError: when the images have different sizes.
    """
    shapes = {tuple(sample['inputs'].shape) for sample in samples}
    if len(shapes) > 1:
        raise ValueError(
            f'the images of a batch have different shapes {sorted(shapes)}: end the pipeline of '
            'the dataset with AlbefAugment or ResizeImage before PackImageText'
        )
    return {
        'inputs': stack_pixels([sample['inputs'] for sample in samples]),
        'data_samples': [sample['data_samples'] for sample in samples],
    }


@FUNCTIONS.register_module()
def stack_regions(samples: list[dict]) -> dict:
    """Pads the regions of the images to one tensor; the data samples stay a list.

    Args:
        samples: dicts of ``inputs``, the :class:`Regions` of one image with features (R, F), or a
            list of them for samples of several images (NLVR2), and ``data_samples``.

    Returns:
        ``dict(inputs=Regions, features (B, R, F); data_samples=list)``; the images of one sample
        follow each other. Boxes and labels are present when all images have them.
    """
    inputs = [sample['inputs'] for sample in samples]
    images = [
        image
        for regions in inputs
        for image in ([regions] if isinstance(regions, Regions) else regions)
    ]
    return {
        'inputs': _pad_fields(images),
        'data_samples': [sample['data_samples'] for sample in samples],
    }


def _pad_fields(rows: Sequence[Regions | ObjectLabels]) -> Regions | ObjectLabels:
    """A batch of named tuples, field by field; None where one of them is None."""
    columns = []
    for column in zip(*rows, strict=True):
        if any(field is None for field in column):
            columns.append(None)
        elif isinstance(column[0], torch.Tensor):
            columns.append(pad_sequence(column, batch_first=True))
        else:
            columns.append(_pad_fields(column))
    return type(rows[0])(*columns)
