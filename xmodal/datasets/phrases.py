"""Readers of phrases with boxes: Flickr30k Entities' files, and lists."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from xmodal.datasets.base import find_files
from xmodal.datasets.boxes import MAX_SIDE, Box, is_corners
from xmodal.datasets.json_stream import stream_objects
from xmodal.datasets.referring import ReferringDataset
from xmodal.datasets.text import clean_caption
from xmodal.fields import shorten
from xmodal.files import read_text, require_regular
from xmodal.registry import DATASETS

_PHRASE = re.compile(r'\[/EN#(?P<entity>\d+)/\S+ (?P<phrase>[^\]]+)\]')
_MAX_XML = 1 << 23  # bytes: an image's objects take a few thousand
_PIXELS = re.compile(r'\s*-?\d{1,7}\s*')

Corners = Sequence[float]  # first column, first row, last column, last row, counted from 1


class PhraseDataset(ReferringDataset):
    """Images with phrases of their captions, each for one or more objects.

    :class:`ReferringDataset` describes the fields of a sample. A phrase with more than one box gets
    the box around all of them, as in the evaluation of the dataset's authors (Plummer et al.,
    2015). The candidate boxes are a detector's or, without ``proposals``, the distinct boxes of all
    phrases of the image.
    """

    def read_tables(self) -> dict:
        """Nothing: the annotation file has the boxes."""
        return {}

    def record(
        self,
        image: str,
        image_id: int,
        phrase: str,
        split: str,
        index: int,
        size: tuple[int, int],
        corners: Corners,
    ) -> dict:
        """The record of the phrase with this index in the file; without a box in training.

        Raises:
            ValueError: when height or width is not a whole number of pixels, or the box is none.
        """
        if any(type(pixels) is not int or not 0 < pixels <= MAX_SIDE for pixels in size):
            raise ValueError(
                f'height and width of {image} are {shorten(list(size))}, expected whole numbers of '
                'pixels'
            )
        box = _as_box(corners)
        record = {
            'image': image,
            'image_id': image_id,
            'text': clean_caption(phrase, self.max_words),
        }
        if self.test_mode:
            record |= {
                'ref_id': index,
                'sent_id': index,
                'split': split,
                'size': size,
                'box': box,
            }
        return record

    def find_proposals(self, records: list[dict], instances: None) -> dict[int, list[Box]]:
        """The candidate boxes of each image of the records, by image id."""
        if self.proposals_file is not None:
            return super().find_proposals(records, instances)
        proposals: dict[int, list[Box]] = defaultdict(list)
        for record in records:
            boxes = proposals[record['image_id']]
            if record['box'] not in boxes:
                boxes.append(record['box'])
        return proposals


@DATASETS.register_module()
class EntitiesDataset(PhraseDataset):
    """Flickr30k Entities' files: a list of images, ``Sentences/`` and ``Annotations/``.

    Phrases without a box (scenes, phrases for nothing in the image) are dropped, as everywhere.

    Args:
        ann_file: the image ids of a split, one per line: ``flickr30k_entities/test.txt``. Its
            folder also has ``Sentences/ID.txt`` and ``Annotations/ID.xml``.
        image_path: path of an image below ``data_prefix.image``, with its ``{id}``.
        **kwargs: see :class:`ReferringDataset`.
    """

    layout = (
        'one image id per line; Sentences/ID.txt with lines "[/EN#40/people A man] eats ."; '
        'Annotations/ID.xml with <size> and <object>s of <name>40</name> and <bndbox>'
    )

    def __init__(self, ann_file: str, image_path: str = '{id}.jpg', **kwargs) -> None:
        self.image_path = image_path
        super().__init__(ann_file, **kwargs)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per phrase with a box, in the order of the captions."""
        index = 0
        for name in read_text(file).split():
            if not name.isdecimal():
                raise ValueError(f'{shorten(name)} is no image id')
            sentences, annotations = find_files(
                self, [f'Sentences/{name}.txt', f'Annotations/{name}.xml'], str(file.parent)
            )
            entities = read_entity_boxes(annotations)
            path = self.image_path.format(id=name)
            for match in _PHRASE.finditer(read_text(sentences)):
                corners = entities.corners.get(match['entity'])
                if corners is None:
                    continue
                yield self.record(
                    path, int(name), match['phrase'], file.stem, index, entities.size, corners
                )
                index += 1


@DATASETS.register_module()
class PhraseListDataset(PhraseDataset):
    """A list of phrases with one box each.

    Args:
        ann_file: the list.
        split: the split of the phrases, or a list of splits; None for all phrases.
        split_key: the key of an item that has its split.
        **kwargs: see :class:`ReferringDataset`.
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
        **kwargs,
    ) -> None:
        self.splits = [split] if isinstance(split, str) else split
        self.split_key = split_key
        super().__init__(ann_file, **kwargs)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per item of the splits; images are numbered in the order of the list."""
        image_ids: dict[str, int] = {}
        for index, item in enumerate(stream_objects(file)):
            split = item.text(self.split_key)
            if self.splits is not None and split not in self.splits:
                continue
            image, size = item.name('image'), (item.get('height'), item.get('width'))
            image_id = image_ids.setdefault(image, len(image_ids))
            phrase, corners = item.text('phrase'), item.items('box_xyxy')
            yield self.record(image, image_id, phrase, split, index, size, corners)


class EntityBoxes(NamedTuple):
    """The used part of an image's annotations.

    Attributes:
        size: height and width.
        corners: corners of the box around all boxes of an entity, by entity id.
    """

    size: tuple[int, int]
    corners: dict[str, Corners]


def read_entity_boxes(file: Path) -> EntityBoxes:
    """Reads an ``Annotations/ID.xml``.

    Raises:
        ValueError: when the file has another layout.
    """
    boxes: dict[str, list[Corners]] = defaultdict(list)
    try:
        require_regular(file, _MAX_XML)
        root = ElementTree.parse(file).getroot()
        size = (_read_pixels(root, 'size/height'), _read_pixels(root, 'size/width'))
        for element in root.iter('object'):
            box = element.find('bndbox')
            if box is None:  # <scene> or <nobndbox>
                continue
            corners = [_read_pixels(box, name) for name in ('xmin', 'ymin', 'xmax', 'ymax')]
            for name in element.iter('name'):
                boxes[name.text].append(corners)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ValueError(
            f'{file} cannot be read as annotations of Flickr30k Entities, <size> with <height> '
            f'and <width>, <object>s with <name> and <bndbox>: {error}'
        ) from error
    return EntityBoxes(size, {entity: _enclose(corners) for entity, corners in boxes.items()})


def _read_pixels(element: ElementTree.Element, path: str) -> int:
    """A whole number of pixels in an element."""
    text = element.findtext(path)
    if text is None or not _PIXELS.fullmatch(text):
        raise ValueError(f'<{path}> is {shorten(text)}, expected a whole number of pixels')
    return int(text)


def _enclose(boxes: Sequence[Corners]) -> Corners:
    """The corners of the smallest box around all boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return [min(lefts), min(tops), max(rights), max(bottoms)]


def _as_box(corners: Corners) -> Box:
    """x, y, width and height, from the indices of the first and the last pixel."""
    if not is_corners(corners) or len(corners) > 4:
        raise ValueError(f'the box {shorten(corners)} is not of four numbers of pixels')
    left, top, right, bottom = map(float, corners)
    if right < left or bottom < top:
        raise ValueError(f'the box {list(corners)} ends before it begins')
    return [left - 1, top - 1, right - left + 1, bottom - top + 1]
