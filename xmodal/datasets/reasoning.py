"""Readers of visual reasoning: NLVR2, ALBEF's form of it, and NLVR."""

import random
from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.json_stream import at_line, read_json_lines, stream_json_list
from xmodal.datasets.records import RecordDataset
from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.text import clean_caption
from xmodal.registry import DATASETS

#: A label is a place in this list.
REASONING_CLASSES = ('False', 'True')
PERMUTATIONS = 6  # of the three boxes of an NLVR picture, a PNG file each
_IMAGE_PATHS = {'train': 'images/train/{directory}/{pair}-img{side}.png'}
_OTHER_IMAGE_PATH = '{split}/{pair}-img{side}.png'


class ReasoningDataset(RecordDataset):
    """Statements, true or false of one or several images.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        max_words: statements are cleaned and cut after so many words; None leaves them as they are.
        **others: see :class:`RecordDataset`.
    """

    def __init__(self, ann_file: str | list[str], max_words: int | None = 30, **others) -> None:
        self.max_words = max_words
        super().__init__(ann_file, **others)

    def describe(self, index: int, chooser: random.Random) -> dict:
        """The images with their statement; ``group`` is what consistency is counted over."""
        record = self.records[index]
        paths = [str(self.image_root / image) for image in record['images']]
        return {
            'img_path': paths[0],
            'img_paths': paths,
            'image_id': derive_seed(*record['images']),
            'text': record['text'],
            'label': record['label'],
            'identifier': record['identifier'],
            'group': record['group'],
            'sample_index': index,
        }

    def sampled_image_paths(self) -> list[Path]:
        """All images of a few records."""
        return [
            self.image_root / image
            for record in self.sampled(self.records)
            for image in record['images']
        ]

    def record(
        self, images: list[str], sentence: str, label: str | bool, identifier: str, group: str
    ) -> dict:
        """What is kept of an annotation; ``group`` is '' where consistency can't be told."""
        name = str(label).capitalize()
        if name not in REASONING_CLASSES:
            raise ValueError(
                f'the label of {identifier or sentence!r} is {label!r}, expected '
                f'{" or ".join(REASONING_CLASSES)}'
            )
        return {
            'images': images,
            'text': clean_caption(sentence, self.max_words),
            'label': REASONING_CLASSES.index(name),
            'identifier': identifier,
            'group': group,
        }


@DATASETS.register_module()
class Nlvr2Dataset(ReasoningDataset):
    """NLVR2's own files, ``{train,dev,test1}.json``, an example a line.

    An identifier is split-set-pair-sentence; the examples of a sentence, one a pair, make a group.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        image_path: where the images are if not where the authors' archives have them, with
            ``{split}``, ``{pair}`` (split-set-pair), ``{side}`` (0 left, 1 right), ``{url}`` (of
            that side) and any field of the example: '{split}/{pair}-img{side}.png'.
        **others: see :class:`ReasoningDataset`.
    """

    layout = (
        'a line each: {"identifier": "split-set-pair-sentence", "sentence": "…", "label": "True", '
        '"left_url": "…", "right_url": "…", "directory": "…" in the training split, …}'
    )

    def __init__(self, ann_file: str | list[str], image_path: str | None = None, **others) -> None:
        self.image_path = image_path
        super().__init__(ann_file, **others)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record a line."""
        for number, item in read_json_lines(file):
            with at_line(number):
                yield self._record_of(item)

    def _record_of(self, item: dict) -> dict:
        identifier = item['identifier']
        parts = identifier.split('-')
        if len(parts) != 4:
            raise ValueError(f"identifier '{identifier}' is not split-set-pair-sentence")
        split, image_set, _, sentence = parts
        images = [
            self._image(item, split, side, item[f'{name}_url'])
            for side, name in enumerate(('left', 'right'))
        ]
        group = f'{split}-{image_set}-{sentence}'
        return self.record(images, item['sentence'], item['label'], identifier, group)

    def _image(self, item: dict, split: str, side: int, url: str) -> str:
        path = self.image_path or _IMAGE_PATHS.get(split, _OTHER_IMAGE_PATH)
        pair = item['identifier'].rpartition('-')[0]
        known = {'split': split, 'pair': pair, 'side': side, 'url': url}
        return path.format_map({**item, **known})


@DATASETS.register_module()
class AlbefReasoningDataset(ReasoningDataset):
    """ALBEF's form, ``nlvr_{train,dev,test}.json``; it does not say which sentence is whose."""

    layout = '[{"images": ["left.png", "right.png"], "sentence": "…", "label": "True"}, …]'

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record an item of the list."""
        for number, item in enumerate(stream_json_list(file)):
            images = item['images']
            if len(images) != 2:
                raise ValueError(f'{len(images)} images for {item["sentence"]!r}, expected 2')
            yield self.record(images, item['sentence'], item['label'], str(number), group='')


@DATASETS.register_module()
class NlvrDataset(ReasoningDataset):
    """NLVR's own files (synthetic pictures of three boxes), ``{train,dev,test}.json``.

    An identifier is presentation-place; each of the six orders of the boxes is a picture and a
    sample of its own. All of a presentation make a group, as in the official script.

    Args:
        ann_file: annotation file or files, below ``data_root``; the name is the split's.
        image_path: where the pictures are, with ``{split}``, ``{order}`` and any field of the
            example.
        **others: see :class:`ReasoningDataset`.
    """

    layout = (
        'a line each: {"identifier": "72-0", "sentence": "…", "label": "true", "directory": "3", …}'
    )

    def __init__(
        self,
        ann_file: str | list[str],
        image_path: str = '{split}/images/{directory}/{split}-{identifier}-{order}.png',
        **others,
    ) -> None:
        self.image_path = image_path
        super().__init__(ann_file, **others)

    def read_records(self, file: Path) -> Iterable[dict]:
        """Six records a line."""
        for number, item in read_json_lines(file):
            with at_line(number):
                yield from self._records_of(item, file.stem)

    def _records_of(self, item: dict, split: str) -> Iterable[dict]:
        group = f'{split}-{item["identifier"].partition("-")[0]}'
        for order in range(PERMUTATIONS):
            image = self.image_path.format_map({**item, 'split': split, 'order': order})
            identifier = f'{split}-{item["identifier"]}-{order}'
            yield self.record([image], item['sentence'], item['label'], identifier, group)
