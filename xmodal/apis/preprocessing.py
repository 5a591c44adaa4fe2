"""The preprocessing of a test set, for images and texts without annotations."""

from collections.abc import Callable
from functools import partial
from inspect import signature

import numpy as np
from mmcv.transforms import BaseTransform, Compose
from mmengine.config import Config, ConfigDict
from torch import nn

from xmodal.build_functions import find_component
from xmodal.datasets.text import clean_caption
from xmodal.datasets.transforms import LoadRegions, build_pipeline
from xmodal.errors import ConfigError
from xmodal.registry import DATASETS


def loader_of_images(config: Config) -> ConfigDict:
    """The loader of a config's test set, which reads images.

    Raises:
        ValueError: if there is none, or it reads region features.
    """
    loader = config.get('test_dataloader')
    if loader is None:
        raise ConfigError(
            f'{config.filename} has no test_dataloader, which says how images and texts are '
            'prepared: give a config of this model that has a test, or add one'
        )
    if 'pipeline' not in loader.dataset:
        raise ValueError(
            f'{config.filename}: test_dataloader.dataset is a {loader.dataset.type} without a '
            'pipeline: it reads precomputed features, not image files. Use `xmodal test`'
        )
    return loader


def image_pipeline(dataset: ConfigDict, model: nn.Module) -> Compose:
    """The transforms of a data set's images, for images of any size.

    Where those of the data set have the model's size already, and its pipeline leaves them as they
    are, others are resized, without keeping their aspect ratio.

    Where the config names an extractor of regions, it computes those of every image: an image file
    may have the name of another one in the region store.
    """
    *transforms, pack = dataset.pipeline
    image_encoder = getattr(getattr(model, 'backbone', model), 'image_encoder', None)
    if image_size := getattr(image_encoder, 'image_size', None):
        transforms = _with_resize(transforms, image_size)
    transforms = [{**t, 'store': []} if t.get('extractor') else t for t in transforms]
    pack = {key: value for key, value in pack.items() if key != 'fields'}  # annotations
    return build_pipeline([*transforms, pack])


def _with_resize(transforms: list[dict], image_size: int | tuple[int, int]) -> list[dict]:
    if any(transform['type'] == 'ResizeImage' for transform in transforms):
        return transforms
    resized = []
    for transform in transforms:
        if inner := transform.get('transforms'):  # ForEachImage
            transform = {**transform, 'transforms': _with_resize(inner, image_size)}
        resized.append(transform)
        if transform['type'] == 'LoadImage':
            resized.append(dict(type='ResizeImage', size=image_size))
    return resized


def blank_image(loading: BaseTransform) -> np.ndarray | str:
    """An image that a pipeline with this first transform takes: where it reads regions, a name."""
    if isinstance(loading, LoadRegions) and loading.extractor_config is None:
        return loading.stores[0].image_id(0)
    return np.zeros((32, 32, 3), np.uint8)


def text_cleaner(dataset: ConfigDict) -> Callable[[str], str]:
    """Returns the function that cleans texts as a data set does, with its limit of words."""
    if 'max_words' in dataset:
        return partial(clean_caption, max_words=dataset.max_words)
    for base in find_component(dataset.type, DATASETS).__mro__:
        if limit := signature(base.__init__).parameters.get('max_words'):
            return partial(clean_caption, max_words=limit.default)
    return clean_caption
