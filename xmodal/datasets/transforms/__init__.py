"""Transforms of images with text; MMCV's and torchvision's do the work."""

from xmodal.datasets.transforms.crop import CropObject
from xmodal.datasets.transforms.image_text import (
    AlbefAugment,
    BrokenImageError,
    LoadImage,
    PackImageText,
    RandomFlip,
    ResizeImage,
    build_pipeline,
)
from xmodal.datasets.transforms.regions import LoadRegions, PackRegionText
from xmodal.datasets.transforms.several_images import ForEachImage, SplitImage
from xmodal.datasets.transforms.two_views import TwoViews

__all__ = [
    'AlbefAugment',
    'BrokenImageError',
    'CropObject',
    'SplitImage',
    'ForEachImage',
    'LoadImage',
    'LoadRegions',
    'PackImageText',
    'PackRegionText',
    'RandomFlip',
    'ResizeImage',
    'TwoViews',
    'build_pipeline',
]
