"""Single things of pictures, for pre-training an image encoder."""

import random
from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.boxes import read_box
from xmodal.datasets.coco import image_names
from xmodal.datasets.records import RecordDataset
from xmodal.files import read_json
from xmodal.registry import DATASETS


@DATASETS.register_module()
class InstanceDataset(RecordDataset):
    """A sample a thing: its picture, its box, and its tags (category and attributes).

    Reads COCO instances; ``attributes``, a list of names, is there in the embedded world's.

    Args:
        ann_file: ``instances_*.json``.
        tags: all tags, in the order of the classifier's outputs; any other is an error.
        **others: see :class:`RecordDataset`.
    """

    layout = (
        '{"images": [{"id", "file_name"}, …], "categories": [{"id", "name"}, …], "annotations": '
        '[{"image_id", "category_id", "bbox", "attributes"?}, …]}'
    )

    def __init__(self, ann_file: str | list[str], tags: list[str], **others) -> None:
        self.tags = {tag: number for number, tag in enumerate(tags)}
        super().__init__(ann_file, **others)

    def describe(self, index: int, chooser: random.Random) -> dict:
        """The picture with the box (x, y, width, height) and the numbers of the tags."""
        record = self.records[index]
        return {
            'img_path': str(self.image_root / record['image']),
            'image_id': record['image_id'],
            'text': '',
            'box': record['box'],
            'tags': record['tags'],
            'sample_index': index,
        }

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record a thing."""
        content = read_json(file)
        images = image_names(content['images'])
        names = {category['id']: category['name'] for category in content['categories']}
        for number, thing in enumerate(content['annotations']):
            tags = [names[thing['category_id']], *thing.get('attributes', [])]
            if unknown := set(tags) - set(self.tags):
                raise ValueError(f'tags {sorted(unknown)} are not in dataset.tags')
            yield {
                'image': images[thing['image_id']],
                'image_id': thing['image_id'],
                'box': read_box(thing['bbox'], f'annotation {number}'),
                'tags': [self.tags[tag] for tag in tags],
            }
