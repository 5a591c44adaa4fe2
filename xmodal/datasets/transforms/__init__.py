"""Transforms of images with text, built on MMCV and torchvision."""

from xmodal.datasets.image_file import BrokenImageError
from xmodal.datasets.transforms.augment import AlbefAugment, ColorJitter
from xmodal.datasets.transforms.geometry import (
    CropBox,
    CropObject,
    RandomFlip,
    ResizeImage,
    SplitImage,
)
from xmodal.datasets.transforms.loading import LoadImage
from xmodal.datasets.transforms.multi_image import ForEachImage, TwoViews
from xmodal.datasets.transforms.packing import PackImageText, PackRegionText, build_pipeline
from xmodal.datasets.transforms.regions import LoadRegions, SplitRegions

__all__ = [
    'AlbefAugment',
    'BrokenImageError',
    'ColorJitter',
    'CropBox',
    'CropObject',
    'SplitImage',
    'ForEachImage',
    'LoadImage',
    'LoadRegions',
    'PackImageText',
    'PackRegionText',
    'RandomFlip',
    'ResizeImage',
    'SplitRegions',
    'TwoViews',
    'build_pipeline',
]
