"""Readers of visual reasoning: NLVR2, ALBEF's lists of it, and NLVR."""

import random
from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.json_stream import at_line, read_json_lines, stream_objects
from xmodal.datasets.records import RecordDataset
from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.text import clean_caption
from xmodal.fields import Fields
from xmodal.registry import DATASETS

#: A label is an index into this list.
REASONING_CLASSES = ('False', 'True')
PERMUTATIONS = 6  # orders of the three boxes of an NLVR image, one PNG file each
_IMAGE_PATHS = {'train': 'images/train/{directory}/{pair}-img{side}.png'}
_OTHER_IMAGE_PATH = '{split}/{pair}-img{side}.png'


class ReasoningDataset(RecordDataset):
    """Statements that are true or false for one or more images.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        max_words: statements are cleaned and truncated after so many words; None leaves them
            unchanged.
        **kwargs: see :class:`RecordDataset`.
    """

    def __init__(self, ann_file: str | list[str], max_words: int | None = 30, **kwargs) -> None:
        self.max_words = max_words
        super().__init__(ann_file, **kwargs)

    def get_data_info(self, index: int, rng: random.Random) -> dict:
        """The images with their statement; consistency is computed over each ``group``."""
        record = dict(self.records[index])
        images = record.pop('images')
        paths = [str(self.image_root / image) for image in images]
        return {
            'img_path': paths[0],
            'img_paths': paths,
            'image_id': derive_seed(*images),
            **record,
            'sample_index': index,
        }

    def images_of(self, record: dict) -> list[str]:
        """Names of the images of a record."""
        return record['images']

    def record(
        self, images: list[str], sentence: str, label: int, identifier: str, group: str
    ) -> dict:
        """The record of an annotation; ``group`` is '' where it is unknown."""
        return {
            'images': images,
            'text': clean_caption(sentence, self.max_words),
            'label': label,
            'identifier': identifier,
            'group': group,
        }


def read_label(item: Fields) -> int:
    """The index of an example's ``label``, which is a text or true or false."""
    label = item.get('label')
    name = str(label).capitalize() if isinstance(label, str | bool) else None
    if name not in REASONING_CLASSES:
        raise item.error('label', ' or '.join(REASONING_CLASSES))
    return REASONING_CLASSES.index(name)


def split_identifier(item: Fields) -> tuple[str, str, str, str]:
    """The parts of an example's ``identifier``: split, set, pair and sentence."""
    parts = item.text('identifier').split('-')
    if len(parts) != 4:
        raise item.error('identifier', 'split-set-pair-sentence')
    return tuple(parts)


@DATASETS.register_module()
class Nlvr2Dataset(ReasoningDataset):
    """NLVR2's files, ``{train,dev,test1}.json``, with one example per line.

    An identifier is split-set-pair-sentence. The examples of a sentence, one per pair, are a group.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        image_path: path of an image, with ``{split}``, ``{pair}`` (split-set-pair), ``{side}`` (0
            left, 1 right), ``{url}`` (of that side) and any field of the example:
            '{split}/{pair}-img{side}.png'. None for the paths in the authors' archives.
        **kwargs: see :class:`ReasoningDataset`.
    """

    layout = (
        'one per line: {"identifier": "split-set-pair-sentence", "sentence": "…", "label": "True", '
        '"left_url": "…", "right_url": "…", "directory": "…" in the training split, …}'
    )

    def __init__(self, ann_file: str | list[str], image_path: str | None = None, **kwargs) -> None:
        self.image_path = image_path
        super().__init__(ann_file, **kwargs)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per line."""
        for line_number, item in read_json_lines(file):
            with at_line(line_number):
                yield self._read_example(item)

    def _read_example(self, item: Fields) -> dict:
        split, image_set, _, sentence = split_identifier(item)
        images = [
            self._image_path(item, split, side, item.text(f'{name}_url'))
            for side, name in enumerate(('left', 'right'))
        ]
        group = f'{split}-{image_set}-{sentence}'
        identifier = item.text('identifier')
        return self.record(images, item.text('sentence'), read_label(item), identifier, group)

    def _image_path(self, item: Fields, split: str, side: int, url: str) -> str:
        template = self.image_path or _IMAGE_PATHS.get(split, _OTHER_IMAGE_PATH)
        pair = item.text('identifier').rpartition('-')[0]
        return item.format(template, split=split, pair=pair, side=side, url=url)


@DATASETS.register_module()
class AlbefReasoningDataset(ReasoningDataset):
    """ALBEF's lists, ``nlvr_{train,dev,test}.json``; without groups of a sentence.

    An identifier is the name of the file and the index in its list.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        images: number of images of a statement, in ALBEF's files two.
        **kwargs: see :class:`ReasoningDataset`.
    """

    layout = '[{"images": ["left.png", "right.png"], "sentence": "…", "label": "True"}, …]'

    def __init__(self, ann_file: str | list[str], images: int = 2, **kwargs) -> None:
        self.num_images = images
        super().__init__(ann_file, **kwargs)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per item of the list."""
        for index, item in enumerate(stream_objects(file)):
            images = item.texts('images')
            if len(images) != self.num_images or not all(map(str.strip, images)):
                number = {1: 'one image', 2: 'two images'}.get(self.num_images)
                raise item.error('images', number or f'{self.num_images} images')
            identifier = f'{self.file_names[file]}-{index}'
            yield self.record(images, item.text('sentence'), read_label(item), identifier, '')


@DATASETS.register_module()
class NlvrDataset(ReasoningDataset):
    """NLVR's files (synthetic images of three boxes), ``{train,dev,test}.json``.

    An identifier is presentation-index. Each of the six orders of the boxes is a separate image and
    sample. All samples of a presentation are a group, as in the official script.

    Args:
        ann_file: annotation file or files, below ``data_root``, named after their split.
        image_path: path of an image, with ``{split}``, ``{order}`` and any field of the example.
        **kwargs: see :class:`ReasoningDataset`.
    """

    layout = (
        'one per line: {"identifier": "72-0", "sentence": "…", "label": "true", "directory": '
        '"3", …}'
    )

    def __init__(
        self,
        ann_file: str | list[str],
        image_path: str = '{split}/images/{directory}/{split}-{identifier}-{order}.png',
        **kwargs,
    ) -> None:
        self.image_path = image_path
        super().__init__(ann_file, **kwargs)

    def read_records(self, file: Path) -> Iterable[dict]:
        """Six records per line."""
        for line_number, item in read_json_lines(file):
            with at_line(line_number):
                yield from self._read_example(item, file)

    def _read_example(self, item: Fields, file: Path) -> Iterable[dict]:
        presentation, label = item.name('identifier'), read_label(item)
        group = f'{self.file_names[file]}-{presentation.partition("-")[0]}'
        for order in range(PERMUTATIONS):
            image = item.format(self.image_path, split=file.stem, order=order)
            identifier = f'{self.file_names[file]}-{presentation}-{order}'
            yield self.record([image], item.text('sentence'), label, identifier, group)
