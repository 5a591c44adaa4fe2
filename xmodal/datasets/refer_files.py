"""The files of referring expressions: COCO's instances, a detector's proposals, REFER's pickles."""

import io
import pickle
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from mmengine.logging import print_log

from xmodal.datasets.boxes import Box, has_area, read_box
from xmodal.datasets.coco import image_names, known_image
from xmodal.expansion import require_pickle_fits
from xmodal.fields import Fields, as_objects, read_object
from xmodal.files import FileError, read_json, reads, require_regular

_LARGE = 1_000_000  # bytes
_MAX_BYTES = 1 << 30


class Instances(NamedTuple):
    """The used part of COCO's instances.

    Attributes:
        file: the file that they were read from.
        images: file name, height and width by image id.
        boxes: annotated boxes by annotation id.
        boxes_by_image: the annotated boxes with an area, by image id.
    """

    file: Path
    images: dict[int, tuple[str, int, int]]
    boxes: dict[int, Box]
    boxes_by_image: dict[int, list[Box]]


@reads(
    'COCO\'s instances, {"images": [{"id", "file_name", "height", "width"}, …], "annotations": '
    '[{"id", "image_id", "bbox"}, …]}'
)
def read_instances(file: Path) -> Instances:
    """Reads COCO's instances.

    Raises:
        FileError: when the file has another layout.
    """
    content = read_object(file)
    names = image_names(content.objects('images'))
    images = {
        image.integer('id'): (
            names[image.integer('id')],
            image.integer('height', low=1),
            image.integer('width', low=1),
        )
        for image in content.objects('images')
    }
    boxes: dict[int, Box] = {}
    boxes_by_image: dict[int, list[Box]] = defaultdict(list)
    for annotation in content.objects('annotations'):
        ann_id, image_id = annotation.integer('id'), known_image(annotation, images)
        if ann_id in boxes:
            raise annotation.error('id', 'an id that no other annotation has')
        boxes[ann_id] = read_box(annotation.items('bbox'), f'annotation {ann_id}')
        if has_area(boxes[ann_id]):
            boxes_by_image[image_id].append(boxes[ann_id])
    return Instances(file, images, boxes, boxes_by_image)


@reads(
    'proposals, [{"image_id", "box": [x, y, width, height]}, …] or {image id: [[x, y, width, '
    'height], …]}'
)
def read_proposals(file: Path) -> dict[int, list[Box]]:
    """Reads a detector's boxes that have an area, by image id, in the order of the file.

    Raises:
        FileError: when the file has neither of the two layouts.
    """
    boxes_by_image: dict[int, list[Box]] = defaultdict(list)
    content = read_json(file)
    if isinstance(content, dict):
        images = Fields(content)
        for image_id in images:
            if not image_id.isdecimal():
                raise ValueError(f'the key {image_id!r} is no image id')
            boxes = images.items(image_id)
            boxes_by_image[int(image_id)] += [read_box(b, f'image {image_id}') for b in boxes]
    else:
        for detection in as_objects(content):
            image_id = detection.integer('image_id')
            box = read_box(detection.items('box'), f'image {image_id}')
            boxes_by_image[image_id].append(box)
    return {
        image_id: [box for box in boxes if has_area(box)]
        for image_id, boxes in boxes_by_image.items()
    }


def look_up(table: dict, id_name: str, key: int, file: Path) -> object:
    """An entry of the table of a file by its id.

    Raises:
        ValueError: when the table does not have it.
    """
    if key not in table:
        raise ValueError(
            f'{id_name} {key} is unknown in {file}: dataset.instances and the references must '
            'belong to the same dataset'
        )
    return table[key]


class PlainUnpickler(pickle._Unpickler):
    """Reads lists, dicts, strings and numbers; refuses to import or call anything.

    It is the slower unpickler in Python: the one in C reserves gigabytes when 20 bytes say so.
    """

    def find_class(self, module: str, name: str) -> object:
        """Refuses.

        Raises:
            UnpicklingError: always.
        """
        raise pickle.UnpicklingError(f'it contains {module}.{name}')


def read_plain_pickle(file: Path) -> object:
    """Reads a pickle of plain containers; unlike ``pickle.load`` it runs no code of the file.

    Raises:
        FileError: when the file is not a pickle, or contains anything else.
    """
    require_regular(file, _MAX_BYTES)
    content = file.read_bytes()
    require_pickle_fits(file, content)
    if len(content) > _LARGE:
        print_log(f'reading {file}, which takes some seconds', 'current')
    try:
        # Strings of Python 2 are bytes; latin-1 decodes any byte.
        return PlainUnpickler(io.BytesIO(content), encoding='latin-1').load()
    except Exception as error:  # each operation of a pickle has its own ways to fail
        reason = str(error)[:100] if isinstance(error, pickle.UnpicklingError) else 'it is damaged'
        raise FileError(
            f'{file} is not a pickle of plain lists, dicts, strings and numbers ({reason}), and '
            'nothing else is read: get the original file of REFER'
        ) from error
