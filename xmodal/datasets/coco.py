"""What readers of COCO's layout share."""

from collections.abc import Iterable


def image_names(images: Iterable[dict]) -> dict[int, str]:
    """File names by id, of the list ``images``.

    Raises:
        ValueError: when an id is there twice.
    """
    names: dict[int, str] = {}
    for image in images:
        number, name = image['id'], image['file_name']
        if number in names:
            raise ValueError(f'two images have the id {number}: {names[number]} and {name}')
        names[number] = name
    return names
