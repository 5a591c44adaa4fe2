"""Records of scenes, from which exporters start, and shared functions for writing."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xmodal.datasets.shapes.scene import Scene
from xmodal.files import atomic_open


@dataclass(frozen=True)
class Record:
    """A scene with its captions and the geometry of its image.

    Attributes:
        scene: the scene.
        captions: its captions.
        boxes: x, y, width, height of each object, in pixels, from its rendered mask.
        areas: number of pixels of each mask.
        size: side of the image, in pixels.
        image: path below ``images/``.
    """

    scene: Scene
    captions: tuple[str, ...]
    boxes: tuple[tuple[int, int, int, int], ...]
    areas: tuple[int, ...]
    size: int
    image: str

    @classmethod
    def rendered(
        cls,
        scene: Scene,
        captions: tuple[str, ...],
        masks: Iterable[np.ndarray],
        size: int,
        image: str,
    ) -> 'Record':
        """The record of a scene whose objects have these masks."""
        boxes, areas = zip(*((_box(mask), int(mask.sum())) for mask in masks), strict=True)
        return cls(scene, captions, boxes, areas, size, image)


def _box(mask: np.ndarray) -> tuple[int, int, int, int]:
    """x, y, width and height of a mask."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    x, y = int(columns[0]), int(rows[0])
    return x, y, int(columns[-1]) - x + 1, int(rows[-1]) - y + 1


Splits = dict[str, list[Record]]
# Image ids are unique over all splits, as in COCO.
_FIRST_ID = {'train': 0, 'val': 1_000_000, 'test': 2_000_000}


def image_id(split: str, record: Record) -> int:
    """The id of an image in every format."""
    return _FIRST_ID[split] + record.scene.index


def write_json_list(file: Path, head: dict, key: str, items: Iterable[object]) -> None:
    """Writes ``{**head, key: [items]}`` with one item per line, without keeping all in memory."""
    with atomic_open(file) as output:
        output.write(f'{json.dumps(head)[:-1]}, "{key}": [')
        for index, item in enumerate(items):
            output.write((',\n' if index else '\n') + json.dumps(item))
        output.write('\n]}\n')


def write_json_lines(file: Path, items: Iterable[object]) -> None:
    """Writes one item per line."""
    with atomic_open(file) as output:
        output.writelines(json.dumps(item) + '\n' for item in items)
