"""The files of referring expressions: COCO's instances, a detector's proposals, REFER's pickles."""

import io
import pickle
from collections import defaultdict
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

from pycocotools.coco import COCO

from xmodal.datasets.boxes import Box, has_area, read_box
from xmodal.datasets.coco import image_names
from xmodal.files import FileError, explain_errors, read_json

INSTANCES_LAYOUT = (
    'COCO\'s instances, {"images": [{"id", "file_name", "height", "width"}, …], "annotations": '
    '[{"id", "image_id", "bbox"}, …]}'
)
PROPOSALS_LAYOUT = (
    'proposals, [{"image_id", "box": [x, y, width, height]}, …] or {image id: [[x, y, width, '
    'height], …]}'
)


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


def read_instances(file: Path) -> Instances:
    """Reads COCO's instances.

    Raises:
        FileError: when the file has another layout.
    """
    with explain_errors(file, INSTANCES_LAYOUT):
        coco = COCO()
        coco.dataset = read_json(file)
        names = image_names(coco.dataset['images'])
        with redirect_stdout(io.StringIO()):  # pycocotools prints its progress
            coco.createIndex()
        images = {
            image_id: (names[image_id], image['height'], image['width'])
            for image_id, image in coco.imgs.items()
        }
        boxes = {
            ann_id: read_box(annotation['bbox'], f'annotation {ann_id}')
            for ann_id, annotation in coco.anns.items()
        }
        boxes_by_image = {
            image_id: [boxes[a['id']] for a in annotations if has_area(boxes[a['id']])]
            for image_id, annotations in coco.imgToAnns.items()
        }
        return Instances(file, images, boxes, boxes_by_image)


def read_proposals(file: Path) -> dict[int, list[Box]]:
    """Reads a detector's boxes that have an area, by image id, in the order of the file.

    Raises:
        FileError: when the file has neither of the two layouts.
    """
    boxes_by_image: dict[int, list[Box]] = defaultdict(list)
    with explain_errors(file, PROPOSALS_LAYOUT):
        content = read_json(file)
        if isinstance(content, dict):
            for image_id, boxes in content.items():
                boxes_by_image[int(image_id)] += [
                    read_box(box, f'image {image_id}') for box in boxes
                ]
        else:
            for detection in content:
                image_id = int(detection['image_id'])
                boxes_by_image[image_id].append(read_box(detection['box'], f'image {image_id}'))
    return {
        image_id: [box for box in boxes if has_area(box)]
        for image_id, boxes in boxes_by_image.items()
    }


def look_up(table: dict, id_name: str, key: int) -> object:
    """An entry of a table by its id.

    Raises:
        ValueError: when the table does not have it.
    """
    if key not in table:
        raise ValueError(
            f'{id_name} {key} is unknown: dataset.instances and the references must belong to the '
            'same dataset'
        )
    return table[key]


class PlainUnpickler(pickle.Unpickler):
    """Reads lists, dicts, strings and numbers; refuses to import or call anything."""

    def find_class(self, module: str, name: str) -> object:
        """Refuses.

        Raises:
            UnpicklingError: always.
        """
        raise pickle.UnpicklingError(f'it contains {module}.{name}')


def read_plain_pickle(file: Path) -> list | dict:
    """Reads a pickle of plain containers; unlike ``pickle.load`` it runs no code of the file.

    Raises:
        FileError: when the file is not a pickle, or contains anything else.
    """
    with open(file, 'rb') as stream:
        try:
            # Strings of Python 2 are bytes; latin-1 decodes any byte.
            return PlainUnpickler(stream, encoding='latin-1').load()
        except (pickle.UnpicklingError, EOFError, IndexError, KeyError, ValueError) as error:
            raise FileError(
                f'{file} is not a pickle of plain lists, dicts, strings and numbers ({error}), and '
                'nothing else is read: get the original file of REFER'
            ) from error
