"""Readers of the benchmarks' own formats, and what feeds them to a model."""

from xmodal.datasets import samplers, transforms
from xmodal.datasets.captions import (
    AlbefJsonDataset,
    CaptionDataset,
    CocoCaptionDataset,
    KarpathyDataset,
)
from xmodal.datasets.collate import stack_images
from xmodal.datasets.streaming import WebDatasetShards

__all__ = [
    'AlbefJsonDataset',
    'CaptionDataset',
    'CocoCaptionDataset',
    'KarpathyDataset',
    'WebDatasetShards',
    'samplers',
    'stack_images',
    'transforms',
]
