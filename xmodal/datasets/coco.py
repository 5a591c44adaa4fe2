"""Shared by the readers of COCO's layout."""

from collections.abc import Collection, Iterable

from xmodal.fields import Fields


def image_names(images: Iterable[Fields]) -> dict[int, str]:
    """File names by image id, from the list ``images``.

    Raises:
        ValueError: when two images have the same id.
    """
    names: dict[int, str] = {}
    for image in images:
        image_id, name = image.integer('id'), image.name('file_name')
        if image_id in names:
            raise ValueError(f'two images have the id {image_id}: {names[image_id]} and {name}')
        names[image_id] = name
    return names


def category_names(categories: Iterable[Fields]) -> dict[int, str]:
    """Names by category id, from the list ``categories``.

    Raises:
        ValueError: when two categories have the same id.
    """
    names: dict[int, str] = {}
    for category in categories:
        if category.integer('id') in names:
            raise category.error('id', 'an id that no other category has')
        names[category.integer('id')] = category.name('name')
    return names


def known_category(annotation: Fields, categories: Collection[int]) -> int:
    """The ``category_id`` of an annotation.

    Raises:
        ValueError: when there is no such category.
    """
    category_id = annotation.integer('category_id')
    if category_id not in categories:
        raise annotation.error('category_id', 'the id of a category of the file')
    return category_id


def known_image(annotation: Fields, images: Collection[int]) -> int:
    """The ``image_id`` of an annotation.

    Raises:
        ValueError: when there is no such image.
    """
    image_id = annotation.integer('image_id')
    if image_id not in images:
        raise annotation.error('image_id', 'the id of an image of the file')
    return image_id
