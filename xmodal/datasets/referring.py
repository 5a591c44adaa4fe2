"""Readers of referring expressions: REFER's own files, and ALBEF's lists."""

import io
import pickle
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

from pycocotools.coco import COCO

from xmodal.datasets.base import find_files
from xmodal.datasets.boxes import Box, has_area, read_box
from xmodal.datasets.coco import image_names
from xmodal.datasets.json_stream import stream_json_list
from xmodal.datasets.records import RecordDataset
from xmodal.datasets.text import clean_caption
from xmodal.files import FileError, explain_errors, read_json
from xmodal.registry import DATASETS

INSTANCES_LAYOUT = (
    'COCO\'s instances, {"images": [{"id", "file_name", "height", "width"}, …], "annotations": '
    '[{"id", "image_id", "bbox"}, …]}'
)
PROPOSALS_LAYOUT = (
    'proposals, [{"image_id", "box": [x, y, width, height]}, …] or {image id: [[x, y, width, '
    'height], …]}'
)
SPLITS = ('train', 'val', 'testA', 'testB')


class Instances(NamedTuple):
    """What is used of COCO's instances.

    Attributes:
        file: where they are from.
        images: file name, height and width, by image id.
        boxes: annotated boxes, by annotation id.
        of_image: those of them that have an area, by image id.
    """

    file: Path
    images: dict[int, tuple[str, int, int]]
    boxes: dict[int, Box]
    of_image: dict[int, list[Box]]


class ReferringDataset(RecordDataset):
    """Images with referring expressions, each naming one thing; a subclass reads its list of them.

    In training a sample is an image and an expression; boxes are not looked at. In test mode it has
    besides: ``ref_id``; ``sent_id``, unlike for any other sample; ``split``; ``size``, height and
    width of the image as annotated; ``box``, the thing's; and ``proposals``, the boxes to choose
    from.

    Args:
        ann_file: list of expressions, below ``data_root``.
        instances: COCO's instances with the images and the annotated boxes.
        proposals: JSON file of a detector's boxes: ``[{"image_id", "box": [x, y, width, height],
            …}, …]`` (MAttNet's) or ``{image id: [[x, y, width, height, …], …]}`` (ALBEF's); None
            for the annotated boxes of the image.
        data_root: folder that paths are relative to.
        data_prefix: ``image``: folder of the images, below ``data_root``.
        pipeline: transforms, from what ``describe`` gives to ``inputs`` and ``data_samples``.
        test_mode: whether samples have boxes; nothing random, and a broken image is an error.
        max_words: expressions are cut after so many words.
        seed: of all random choices.

    Raises:
        FileNotFoundError: when an annotation file is not there, or no image, in test mode any.
        ValueError: when a file is not of its format, names an unknown id, or the detector found
            nothing in an image of the test.
    """

    def __init__(
        self,
        ann_file: str,
        instances: str | None = None,
        proposals: str | None = None,
        data_root: str = '',
        data_prefix: dict[str, str] | None = None,
        pipeline: list[dict | Callable] = (),
        test_mode: bool = False,
        max_words: int = 30,
        seed: int = 0,
    ) -> None:
        self.max_words = max_words
        self.instances = instances and read_instances(find_files(self, instances, data_root)[0])
        super().__init__(ann_file, data_root, data_prefix, pipeline, test_mode, seed)
        self.proposals = self._choices(proposals, data_root) if test_mode else {}
        self.instances = None  # RefCOCO+'s are 196,771; what is needed is in the records

    def describe(self, index: int, chooser: random.Random) -> dict:
        """An image and an expression; in test mode with its boxes."""
        described = dict(self.records[index])
        described['img_path'] = str(self.image_root / described.pop('image'))
        if self.test_mode:
            described['proposals'] = self.proposals[described['image_id']]
        return {**described, 'sample_index': index}

    def _describe_reference(self, reference: dict, sent_id: int) -> dict:
        """What a test adds to a record, from an entry of ``refs(unc).p``."""
        box = _look_up(self.instances.boxes, 'ann_id', reference['ann_id'])
        if not has_area(box):
            raise ValueError(
                f'the box of ann_id {reference["ann_id"]} is {box} in {self.instances.file}: no '
                'prediction can be right of a thing without area'
            )
        return {
            'ref_id': reference['ref_id'],
            'sent_id': sent_id,
            'split': reference['split'],
            'size': self._image_of(reference)[1:],
            'box': box,
        }

    def _image_of(self, reference: dict) -> tuple[str, int, int]:
        """File name, height and width of an entry's image."""
        return _look_up(self.instances.images, 'image_id', reference['image_id'])

    def _choices(self, proposals: str | None, data_root: str) -> dict[int, list[Box]]:
        """The boxes to choose from, of each image of the records."""
        wanted = {record['image_id'] for record in self.records}
        if proposals is None:
            file, found = self.instances.file, self.instances.of_image
            remedy = 'name a file with some as dataset.proposals'
        else:
            (file,) = find_files(self, proposals, data_root)
            found = read_proposals(file)
            remedy = 'add some, or leave out dataset.proposals to choose from the annotated boxes'
        if missing := sorted(image for image in wanted if not found.get(image)):
            raise ValueError(
                f'{file} has no box with an area for {len(missing)} of {len(wanted)} images, for '
                f'instance image {missing[0]}: {remedy}'
            )
        return {image: found[image] for image in wanted}


@DATASETS.register_module()
class ReferDataset(ReferringDataset):
    """REFER's files: ``refs(unc).p`` and ``instances.json`` of RefCOCO, RefCOCO+ and their like.

    Args:
        ann_file: ``refcoco+/refs(unc).p``.
        split: 'train', 'val', 'testA', 'testB', or several.
        instances: ``refcoco+/instances.json``.
        **others: see :class:`ReferringDataset`.
    """

    layout = (
        'a pickled list of {"ref_id", "ann_id", "image_id", "split", "sentences": [{"sent", '
        '"sent_id"}, …]} in plain containers'
    )

    def __init__(self, ann_file: str, split: str | list[str], instances: str, **others) -> None:
        self.splits = [split] if isinstance(split, str) else list(split)
        super().__init__(ann_file, instances, **others)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record an expression of the splits."""
        references = read_plain_pickle(file)
        found = {reference['split'] for reference in references}
        if missing := set(self.splits) - found:
            raise ValueError(
                f'there is no split {sorted(missing)}, split must be of {sorted(found)}'
            )
        for reference in references:
            if reference['split'] in self.splits:
                yield from self._records_of(reference)

    def _records_of(self, reference: dict) -> Iterable[dict]:
        image = self._image_of(reference)[0]
        for sentence in reference['sentences']:
            record = {
                'image': image,
                'image_id': reference['image_id'],
                'text': clean_caption(sentence['sent'], self.max_words),
            }
            if self.test_mode:
                record |= self._describe_reference(reference, sentence['sent_id'])
            yield record


@DATASETS.register_module()
class AlbefReferringDataset(ReferringDataset):
    """ALBEF's lists: ``{image, text}`` for training, ``{image, text, ref_id}`` for tests.

    A sample's ``sent_id`` is its place in the list.

    Args:
        ann_file: the list.
        references: REFER's ``refs(unc).p``, for what a ``ref_id`` means; in test mode, together
            with ``instances``.
        test_mode: see :class:`ReferringDataset`, as all others.
    """

    layout = '[{"image": "path.jpg", "text": "expression", "ref_id": in tests}, …]'

    def __init__(
        self, ann_file: str, references: str | None = None, test_mode: bool = False, **others
    ) -> None:
        self.references: dict[int, dict] = {}
        if test_mode:
            if not (references and others.get('instances')):
                raise ValueError(
                    f'{ann_file} has no boxes: in test mode dataset.references and '
                    "dataset.instances must name REFER's refs(unc).p and instances.json"
                )
            file = find_files(self, references, others.get('data_root', ''))[0]
            with explain_errors(file, ReferDataset.layout):
                self.references = {entry['ref_id']: entry for entry in read_plain_pickle(file)}
        super().__init__(ann_file, test_mode=test_mode, **others)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record an item of the list; without references, images are numbered as they come."""
        numbers: dict[str, int] = {}
        for place, item in enumerate(stream_json_list(file)):
            image = item['image']
            record = {
                'image': image,
                'image_id': numbers.setdefault(image, len(numbers)),
                'text': clean_caption(item['text'], self.max_words),
            }
            if self.test_mode:
                reference = _look_up(self.references, 'ref_id', item['ref_id'])
                record |= self._describe_reference(reference, place)
                record['image_id'] = reference['image_id']
            yield record


def _look_up(known: dict, name: str, number: int) -> object:
    """An entry by its id.

    Raises:
        ValueError: when no file has it.
    """
    if number not in known:
        raise ValueError(
            f'{name} {number} is unknown: dataset.instances and the references must be of one set'
        )
    return known[number]


class PlainUnpickler(pickle.Unpickler):
    """Reads lists, dicts, strings and numbers; what would import or call anything is refused."""

    def find_class(self, module: str, name: str) -> object:
        """Refuses.

        Raises:
            UnpicklingError: always.
        """
        raise pickle.UnpicklingError(f'it holds a {module}.{name}')


def read_plain_pickle(file: Path) -> list | dict:
    """Reads a pickle of plain containers; unlike ``pickle.load`` this runs nothing of the file.

    Raises:
        ValueError: when the file is no pickle, or holds anything else.
    """
    with open(file, 'rb') as stream:
        try:
            # Strings of Python 2 are bytes; latin-1 reads any.
            return PlainUnpickler(stream, encoding='latin-1').load()
        except (pickle.UnpicklingError, EOFError, IndexError, KeyError, ValueError) as error:
            raise FileError(
                f'{file} is not a pickle of plain lists, dicts, strings and numbers alone '
                f'({error}), and nothing else is read: get the original file of REFER'
            ) from error


def read_instances(file: Path) -> Instances:
    """Reads COCO's instances.

    Raises:
        ValueError: when the file is not of the format.
    """
    with explain_errors(file, INSTANCES_LAYOUT):
        coco = COCO()
        coco.dataset = read_json(file)
        names = image_names(coco.dataset['images'])
        with redirect_stdout(io.StringIO()):  # pycocotools reports its progress
            coco.createIndex()
        images = {
            number: (names[number], image['height'], image['width'])
            for number, image in coco.imgs.items()
        }
        boxes = {
            number: read_box(annotation['bbox'], f'annotation {number}')
            for number, annotation in coco.anns.items()
        }
        of_image = {
            number: [boxes[a['id']] for a in own if has_area(boxes[a['id']])]
            for number, own in coco.imgToAnns.items()
        }
        return Instances(file, images, boxes, of_image)


def read_proposals(file: Path) -> dict[int, list[Box]]:
    """Reads a detector's boxes that have an area, by image id, in the order of the file.

    Raises:
        ValueError: when the file is of neither format.
    """
    found: dict[int, list[Box]] = defaultdict(list)
    with explain_errors(file, PROPOSALS_LAYOUT):
        content = read_json(file)
        if isinstance(content, dict):
            for image, boxes in content.items():
                found[int(image)] += [read_box(box, f'image {image}') for box in boxes]
        else:
            for detection in content:
                image = int(detection['image_id'])
                found[image].append(read_box(detection['box'], f'image {image}'))
    return {image: [box for box in boxes if has_area(box)] for image, boxes in found.items()}
