"""Writes described scenes in the formats of the benchmarks, one function a format.

An exporter takes the folder and ``{split: [Record, …]}``, and writes its files. What is written is
read by the very readers that read the real sets.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from xmodal.datasets.shapes.grammar import vocabulary
from xmodal.datasets.shapes.scene import SHAPES, Scene


@dataclass(frozen=True)
class Record:
    """A described scene, as the exporters see it.

    Attributes:
        scene: the scene.
        captions: what is said of it.
        boxes: x, y, width, height of each thing, in pixels, from its drawn mask.
        areas: pixels of each mask.
        size: side of the image, in pixels.
        image: path below ``images/``.
    """

    scene: Scene
    captions: tuple[str, ...]
    boxes: tuple[tuple[int, int, int, int], ...]
    areas: tuple[int, ...]
    size: int
    image: str


Splits = dict[str, list[Record]]
# Image ids are unique over the splits, as they are in COCO.
_FIRST_ID = {'train': 0, 'val': 1_000_000, 'test': 2_000_000}


def image_id(split: str, record: Record) -> int:
    """The id of an image in every format."""
    return _FIRST_ID[split] + record.scene.index


def write_albef(folder: Path, splits: Splits) -> None:
    """``albef/SPLIT.json``: a list of image, captions and image_id."""
    for split, records in splits.items():
        _dump(
            folder / 'albef' / f'{split}.json',
            [
                {
                    'image': f'images/{record.image}',
                    'caption': list(record.captions),
                    'image_id': image_id(split, record),
                }
                for record in records
            ],
        )


def write_karpathy(folder: Path, splits: Splits) -> None:
    """``karpathy/dataset_shapes.json``: the layout of dataset_coco.json and dataset_flickr30k."""
    images, sentence_id = [], 0
    for split, records in splits.items():
        for record in records:
            ids = list(range(sentence_id, sentence_id + len(record.captions)))
            sentence_id += len(ids)
            number = image_id(split, record)
            filepath, filename = f'images/{record.image}'.rsplit('/', 1)
            sentences = [
                {'tokens': text.split(), 'raw': text, 'imgid': number, 'sentid': sentid}
                for text, sentid in zip(record.captions, ids, strict=True)
            ]
            images.append(
                {
                    'filepath': filepath,
                    'filename': filename,
                    'imgid': number,
                    'cocoid': number,
                    'split': split,
                    'sentids': ids,
                    'sentences': sentences,
                }
            )
    _dump(folder / 'karpathy' / 'dataset_shapes.json', {'dataset': 'shapes', 'images': images})


def write_coco(folder: Path, splits: Splits) -> None:
    """``coco/captions_SPLIT.json`` and ``coco/instances_SPLIT.json``; a category is a shape."""
    categories = [
        {'id': number, 'name': name, 'supercategory': 'shape'}
        for number, name in enumerate(SHAPES, start=1)
    ]
    for split, records in splits.items():
        images, captions, instances = [], [], []
        for record in records:
            number = image_id(split, record)
            side = {'width': record.size, 'height': record.size}
            images.append({'id': number, 'file_name': f'images/{record.image}', **side})
            for text in record.captions:
                captions.append({'id': len(captions), 'image_id': number, 'caption': text})
            things = zip(record.scene.things, record.boxes, record.areas, strict=True)
            for thing, box, area in things:
                instances.append(
                    {
                        'id': len(instances) + 1,
                        'image_id': number,
                        'category_id': SHAPES.index(thing.shape) + 1,
                        'bbox': list(box),
                        'area': area,
                        'iscrowd': 0,
                        'attributes': [thing.colour, thing.size, thing.texture],
                    }
                )
        info = {'description': 'xmodal shapes'}
        _dump(
            folder / 'coco' / f'captions_{split}.json',
            {'info': info, 'images': images, 'annotations': captions},
        )
        _dump(
            folder / 'coco' / f'instances_{split}.json',
            {'info': info, 'images': images, 'annotations': instances, 'categories': categories},
        )


def write_vocabulary(folder: Path, splits: Splits) -> None:
    """``vocab.txt``: the words of the grammar, in the form of BERT's vocabulary."""
    (folder / 'vocab.txt').write_text('\n'.join(vocabulary()) + '\n', 'utf-8')


EXPORTERS: tuple[Callable[[Path, Splits], None], ...] = (
    write_albef,
    write_karpathy,
    write_coco,
    write_vocabulary,
)


def _dump(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), 'utf-8')
