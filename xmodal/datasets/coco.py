"""Shared by the readers of COCO's layout."""

from collections.abc import Iterable


def image_names(images: Iterable[dict]) -> dict[int, str]:
    """File names by image id, from the list ``images``.

    Raises:
        ValueError: when two images have the same id.
    """
    names: dict[int, str] = {}
    for image in images:
        image_id, name = image['id'], image['file_name']
        if image_id in names:
            raise ValueError(f'two images have the id {image_id}: {names[image_id]} and {name}')
        names[image_id] = name
    return names
