"""The scenes of the embedded world, and the names that benchmarks give to their images."""

import json
from pathlib import Path

from xmodal.files import read_json

COCO = {'train': 'train2014', 'val': 'val2014'}


class Scenes:
    """The scenes of a world, and its files.

    Attributes:
        files: the image file of each scene, by its number.
        numbers: of each scene, by the stem of its image file.
    """

    def __init__(self, world: Path) -> None:
        self.world = world
        lists = [self.read(f'coco/captions_{split}.json') for split in ('train', 'val', 'test')]
        images = [image for content in lists for image in content['images']]
        self.files = {image['id']: world / image['file_name'] for image in images}
        self.numbers = {file.stem: number for number, file in self.files.items()}

    def read(self, name: str) -> object:
        return read_json(self.world / name)

    def read_lines(self, name: str) -> list[dict]:
        return [json.loads(line) for line in (self.world / name).read_text().splitlines()]


def coco_name(number: int, subset: str) -> str:
    return f'COCO_{subset}_{number:012d}'


def link(file: Path, target: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(target)


def statement_images(example: dict) -> dict[str, str]:
    """The names of the two images of an example of NLVR2, and their files in the world."""
    pair = example['identifier'].rpartition('-')[0]
    return {f'{pair}-img0': example['left_url'], f'{pair}-img1': example['right_url']}
