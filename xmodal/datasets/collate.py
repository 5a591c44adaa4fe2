"""From samples to a batch."""

import torch
from torch.nn.utils.rnn import pad_sequence

from xmodal.registry import FUNCTIONS
from xmodal.structures import Regions


@FUNCTIONS.register_module()
def stack_images(samples: list[dict]) -> dict:
    """Makes one tensor of the images; the rest stays a list.

    One tensor travels from a worker process many times faster than one for each image.

    Args:
        samples: of ``inputs``, uint8 (3, H, W), and ``data_samples``.

    Returns:
        ``dict(inputs=uint8 (B, 3, H, W), data_samples=list)``.

    Raises:
        ValueError: when the images are not of one size.
    """
    sizes = {tuple(sample['inputs'].shape) for sample in samples}
    if len(sizes) > 1:
        raise ValueError(
            f'the images of a batch have different shapes {sorted(sizes)}: end the pipeline of the '
            'dataset with Augment or ResizeImage before PackImageText'
        )
    return {
        'inputs': torch.stack([sample['inputs'] for sample in samples]),
        'data_samples': [sample['data_samples'] for sample in samples],
    }


@FUNCTIONS.register_module()
def stack_regions(samples: list[dict]) -> dict:
    """Pads the regions of images to one tensor; the rest stays a list.

    Args:
        samples: of ``inputs``, the :class:`Regions` of one image, (R, F), and ``data_samples``.

    Returns:
        ``dict(inputs=Regions, features (B, R, F); data_samples=list)``. Boxes are there when all
        samples have them.
    """
    own = [sample['inputs'] for sample in samples]
    with_boxes = all(regions.boxes is not None for regions in own)
    return {
        'inputs': Regions(
            pad_sequence([regions.features for regions in own], batch_first=True),
            pad_sequence([regions.attention_mask for regions in own], batch_first=True),
            pad_sequence([regions.boxes for regions in own], batch_first=True)
            if with_boxes
            else None,
        ),
        'data_samples': [sample['data_samples'] for sample in samples],
    }
