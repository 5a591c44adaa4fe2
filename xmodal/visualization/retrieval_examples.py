"""Retrieval examples of the report: some queries with their best matches."""

from typing import NamedTuple

import numpy as np

from xmodal.datasets.image_file import BrokenImageError, read_image
from xmodal.visualization.figures import shrink, to_uri


class ShownImage(NamedTuple):
    """An image of the page.

    Attributes:
        uri: the image as a data URI; '' if the data set has region features and no image files.
        name: its file or id.
        text: its first text.
    """

    uri: str
    name: str
    text: str


class Example(NamedTuple):
    """A query, image or text, and its best matches as (content, whether it is correct)."""

    query: ShownImage | str
    matches: list[tuple[ShownImage | str, bool]]


def text_to_image_example(rankings: dict, image: int, has_files: bool) -> Example:
    """Returns the first text of an image with its three best images.

    Args:
        rankings: saved by a test (``save_rankings``).
        image: index of the image.
        has_files: whether the images are files.
    """
    text = rankings['text_to_image'].index(image)
    best = rankings['ranked_images'][text][:3]
    matches = [(_show_image(rankings, index, has_files), index == image) for index in best]
    return Example(rankings['texts'][text], matches)


def image_to_text_example(rankings: dict, image: int, has_files: bool) -> Example:
    """Returns an image with its three best texts; arguments as above."""
    best = rankings['ranked_texts'][image][:3]
    matches = [(rankings['texts'][text], rankings['text_to_image'][text] == image) for text in best]
    return Example(_show_image(rankings, image, has_files), matches)


def first_text(rankings: dict, image: int) -> str:
    """Returns the first text of an image."""
    return rankings['texts'][rankings['text_to_image'].index(image)]


def read_thumbnail(path: str) -> np.ndarray:
    """Reads an image file as RGB, with sides of at most 320 pixels.

    Raises:
        BrokenImageError: if the file is missing, broken or no image.
    """
    try:
        image = read_image(path)
    except BrokenImageError as error:
        raise BrokenImageError(f'{error}; run the report where its images are') from error
    return shrink(image, 320)


def _show_image(rankings: dict, image: int, has_files: bool) -> ShownImage:
    name = rankings['images'][image]
    return ShownImage(
        to_uri(read_thumbnail(name)) if has_files else '', name, first_text(rankings, image)
    )
