"""What users give to the inferencer: images in several forms, and lists of them and of texts."""

from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path

import cv2
import numpy as np
from mmcv.transforms import BaseTransform
from PIL import Image, ImageOps

from xmodal.datasets.image_file import BrokenImageError
from xmodal.datasets.transforms import ForEachImage, LoadImage
from xmodal.fields import shorten

#: A file, an encoded image, RGB pixels uint8 (H, W, 3), or an image of Pillow.
ImageLike = str | Path | bytes | np.ndarray | Image.Image


def require_images(images: Sequence[ImageLike]) -> None:
    """Refuses what is no list; a single path, array or image would pass as many.

    Raises:
        TypeError: says what was given.
    """
    is_array = isinstance(images, np.ndarray)
    is_one = images.ndim in (2, 3) if is_array else isinstance(images, ImageLike)
    _require_list('images', images, is_one)


def require_texts(texts: Sequence[str]) -> None:
    """Refuses what is no list of texts; the letters of a single text would pass as many.

    Raises:
        TypeError: says what was given.
    """
    _require_list('texts', texts, isinstance(texts, str | bytes))
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f'texts[{index}] is {shorten(text)}, expected a text')


def clean_texts(texts: Sequence[str], clean: Callable[[str], str]) -> list[str]:
    """Cleans texts, and refuses one of which nothing is left: its score would say nothing.

    Raises:
        TypeError: when they are no list of texts.
        ValueError: names a text in which there is no word.
    """
    require_texts(texts)
    cleaned = []
    for index, text in enumerate(texts):
        cleaned.append(clean(text))
        if not cleaned[-1].strip():
            raise ValueError(
                f'texts[{index}] is {text!r}, in which there is no word: expected some'
            )
    return cleaned


def require_pairs(images: Sequence, texts: Sequence[str]) -> None:
    """Refuses lists of different lengths.

    Raises:
        TypeError: when one is no list.
        ValueError: when there is not one text for each image.
    """
    require_images(images)
    require_texts(texts)
    if len(images) != len(texts):
        raise ValueError(
            f'got {len(images)} images and {len(texts)} texts, expected one text for each image'
        )


def _require_list(name: str, values: object, is_one: bool) -> None:
    if is_one:
        value = repr(values) if isinstance(values, str | Path) else type(values).__name__
        raise TypeError(f'{name}={value}, expected a list: {name}=[{value}]')
    is_list = hasattr(values, '__len__') and hasattr(values, '__getitem__')
    if not is_list or isinstance(values, Mapping | Set):
        raise TypeError(f'{name} is {shorten(values)}, expected a list')


def image_fields(
    image: ImageLike | Sequence[ImageLike], name: str, loading: BaseTransform | None = None
) -> dict:
    """The fields of a sample that ``LoadImage`` reads, for an image or several.

    Args:
        image: an image, or a list of images for a model that takes several.
        name: what errors call it where it is no file.
        loading: the first transform of the model's pipeline; one of regions takes either.

    Raises:
        TypeError: for several images where the model takes one, of which it would take the first;
            for one image where it takes several; for what is no image.
    """
    is_list = isinstance(image, list | tuple)
    if is_list and isinstance(loading, LoadImage):
        raise TypeError(f'{name} is a list of {len(image)}, and the model takes one image at once')
    if not is_list and isinstance(loading, ForEachImage):
        raise TypeError(f'{name} is one image, and the model takes a list of several at once')
    if is_list:
        pairs = [_source(each, f'{name}[{index}]') for index, each in enumerate(image)]
        paths, contents = zip(*pairs, strict=True) if pairs else ([name], [None])
        return {'img_path': paths[0], 'img_paths': list(paths), 'imgs_bytes': list(contents)}
    path, content = _source(image, name)
    return {'img_path': path, 'img_bytes': content}


def _source(image: ImageLike, name: str) -> tuple[str, bytes | None]:
    """The path of an image, or its name and encoded content."""
    if isinstance(image, str | Path):
        return str(image), None
    if isinstance(image, bytes):
        return name, image
    if isinstance(image, Image.Image):
        try:  # as a file is read: turned upright, without transparency
            image = ImageOps.exif_transpose(image)
            if image.mode.startswith('I;16'):  # Pillow would cut off all values above 255
                image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
            image = np.asarray(image.convert('RGB'))
        except OSError as error:  # Pillow reads the pixels only now
            raise BrokenImageError(f'{name}: {error}') from error
    is_array = isinstance(image, np.ndarray)
    if not (is_array and image.dtype == np.uint8 and image.shape[2:] == (3,) and image.size):
        found = f'{image.dtype} {image.shape}' if is_array else shorten(image)
        raise TypeError(
            f'{name} is {found}, expected a path, bytes, an image of Pillow, or RGB pixels uint8 '
            '(H, W, 3)'
        )
    return name, cv2.imencode('.png', image[..., ::-1])[1].tobytes()
