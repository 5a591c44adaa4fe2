"""Readers of phrases with boxes: Flickr30k Entities' own files, and lists."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from xmodal.datasets.base import find_files
from xmodal.datasets.boxes import Box
from xmodal.datasets.json_stream import stream_json_list
from xmodal.datasets.referring import ReferringDataset
from xmodal.datasets.text import clean_caption
from xmodal.registry import DATASETS

_PHRASE = re.compile(r'\[/EN#(?P<entity>\d+)/\S+ (?P<phrase>[^\]]+)\]')

Corners = Sequence[float]  # first column, first row, last column, last row, counted from 1


class PhraseDataset(ReferringDataset):
    """Images with phrases of their captions, each naming one thing or several together.

    What a sample has is said at :class:`ReferringDataset`. A phrase of several boxes has the box
    around all of them, as in the evaluation of the data set's authors (Plummer et al., 2015). The
    boxes to choose from are a detector's or, without ``proposals``, those of all phrases of the
    image, each once.
    """

    def record(
        self,
        image: str,
        image_id: int,
        phrase: str,
        split: str,
        place: int,
        size: tuple[int, int],
        corners: Corners,
    ) -> dict:
        """What is kept of a phrase, the ``place``-th of the file; no box in training."""
        record = {
            'image': image,
            'image_id': image_id,
            'text': clean_caption(phrase, self.max_words),
        }
        if self.test_mode:
            record |= {
                'ref_id': place,
                'sent_id': place,
                'split': split,
                'size': size,
                'box': _as_box(corners),
            }
        return record

    def _choices(self, proposals: str | None, data_root: str) -> dict[int, list[Box]]:
        """The boxes to choose from, of each image of the records."""
        if proposals is not None:
            return super()._choices(proposals, data_root)
        choices: dict[int, list[Box]] = defaultdict(list)
        for record in self.records:
            own = choices[record['image_id']]
            if record['box'] not in own:
                own.append(record['box'])
        return dict(choices)


@DATASETS.register_module()
class EntitiesDataset(PhraseDataset):
    """Flickr30k Entities' own files: a list of images, ``Sentences/`` and ``Annotations/``.

    Phrases without a box (scenes, what is not in the picture) are left out, as everywhere.

    Args:
        ann_file: the images of a split, an id a line: ``flickr30k_entities/test.txt``. Beside it
            lie ``Sentences/ID.txt`` and ``Annotations/ID.xml``.
        image_path: of an image below ``data_prefix.image``, with its ``{id}``.
        **others: see :class:`ReferringDataset`.
    """

    layout = (
        'an image id a line; "[/EN#40/people A man] eats ." a line in Sentences/ID.txt; in '
        'Annotations/ID.xml a <size> and <object>s of <name>40</name> and <bndbox>'
    )

    def __init__(self, ann_file: str, image_path: str = '{id}.jpg', **others) -> None:
        self.image_path = image_path
        super().__init__(ann_file, **others)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record a phrase that has a box, in the order of the captions."""
        place = 0
        for name in file.read_text('utf-8-sig').split():
            sentences, annotations = find_files(
                self, [f'Sentences/{name}.txt', f'Annotations/{name}.xml'], str(file.parent)
            )
            image = read_entity_boxes(annotations)
            for found in _PHRASE.finditer(sentences.read_text('utf-8-sig')):
                corners = image.corners.get(found['entity'])
                if corners is None:
                    continue
                path = self.image_path.format(id=name)
                yield self.record(
                    path, int(name), found['phrase'], file.stem, place, image.size, corners
                )
                place += 1


@DATASETS.register_module()
class PhraseListDataset(PhraseDataset):
    """A list of phrases, one box each.

    Args:
        ann_file: the list.
        split: of which splits the phrases are, one or several; None for all phrases.
        split_key: the key of an item that names its split.
        **others: see :class:`ReferringDataset`.
    """

    layout = (
        '[{"image": "path.jpg", "phrase": "…", "box_xyxy": [first column, first row, last column, '
        'last row, from 1], "width": …, "height": …, "split": "…"}, …]'
    )

    def __init__(
        self,
        ann_file: str,
        split: str | list[str] | None = None,
        split_key: str = 'split',
        **others,
    ) -> None:
        self.splits = [split] if isinstance(split, str) else split
        self.split_key = split_key
        super().__init__(ann_file, **others)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record an item of the splits; images are numbered as they come."""
        numbers: dict[str, int] = {}
        for place, item in enumerate(stream_json_list(file)):
            split = item[self.split_key]
            if self.splits is not None and split not in self.splits:
                continue
            image, size = item['image'], (item['height'], item['width'])
            number = numbers.setdefault(image, len(numbers))
            yield self.record(image, number, item['phrase'], split, place, size, item['box_xyxy'])


class EntityBoxes(NamedTuple):
    """What is used of an image's annotations.

    Attributes:
        size: height and width.
        corners: around all boxes of an entity, by its id.
    """

    size: tuple[int, int]
    corners: dict[str, Corners]


def read_entity_boxes(file: Path) -> EntityBoxes:
    """Reads an ``Annotations/ID.xml``.

    Raises:
        ValueError: when the file is not of the format.
    """
    boxes: dict[str, list[Corners]] = defaultdict(list)
    try:
        root = ElementTree.parse(file).getroot()
        size = (int(root.findtext('size/height')), int(root.findtext('size/width')))
        for thing in root.iter('object'):
            box = thing.find('bndbox')
            if box is None:  # <scene> or <nobndbox>
                continue
            corners = [int(box.findtext(name)) for name in ('xmin', 'ymin', 'xmax', 'ymax')]
            for name in thing.iter('name'):
                boxes[name.text].append(corners)
    except (ElementTree.ParseError, TypeError, ValueError) as error:
        raise ValueError(
            f'{file} can not be read as annotations of Flickr30k Entities, <size> with <height> '
            f'and <width>, <object>s with <name> and <bndbox>: {error}'
        ) from error
    return EntityBoxes(size, {name: _around(own) for name, own in boxes.items()})


def _around(boxes: Sequence[Corners]) -> Corners:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return [min(lefts), min(tops), max(rights), max(bottoms)]


def _as_box(corners: Corners) -> Box:
    """x, y, width and height, from the first and the last pixel."""
    left, top, right, bottom = (float(number) for number in corners)
    if not all(map(math.isfinite, (left, top, right, bottom))):
        raise ValueError(f'the box {list(corners)} has a corner that is no number')
    if right < left or bottom < top:
        raise ValueError(f'the box {list(corners)} ends before it begins')
    return [left - 1, top - 1, right - left + 1, bottom - top + 1]
