"""The preprocessing of a test set, for images and texts without annotations."""

from collections.abc import Callable
from functools import partial
from inspect import signature

from mmcv.transforms import Compose
from mmengine.config import ConfigDict

from xmodal.datasets.text import clean_caption
from xmodal.datasets.transforms import build_pipeline
from xmodal.registry import DATASETS


def image_pipeline(dataset: ConfigDict, image_size: int | None = None) -> Compose:
    """The transforms of a data set's images, for images of any size.

    Where the config names an extractor of regions, it computes those of every image: an image file
    may have the name of another one in the region store.

    Args:
        dataset: of a config.
        image_size: to which images are resized where those of the data set have it, and its
            pipeline leaves them as they are; None for models that take any.
    """
    *transforms, pack = dataset.pipeline
    if image_size is not None:
        transforms = _with_resize(transforms, image_size)
    transforms = [{**t, 'store': []} if t.get('extractor') else t for t in transforms]
    pack = {key: value for key, value in pack.items() if key != 'fields'}  # annotations
    return build_pipeline([*transforms, pack])


def _with_resize(transforms: list[dict], image_size: int) -> list[dict]:
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


def text_cleaner(dataset: ConfigDict) -> Callable[[str], str]:
    """Returns the function that cleans texts as a data set does, with its limit of words."""
    if 'max_words' in dataset:
        return partial(clean_caption, max_words=dataset.max_words)
    for base in DATASETS.get(dataset.type).__mro__:
        if limit := signature(base.__init__).parameters.get('max_words'):
            return partial(clean_caption, max_words=limit.default)
    return clean_caption
