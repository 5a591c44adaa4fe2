"""Boxes of regions that a file gives, and regions with classes."""

from collections import defaultdict
from pathlib import Path

import torch
from torch import Tensor

from xmodal.datasets.boxes import read_box
from xmodal.datasets.coco import image_names, known_image
from xmodal.datasets.image_file import image_stem
from xmodal.fields import read_object
from xmodal.files import reads
from xmodal.structures import ObjectLabels, Regions


class GivenBoxes:
    """The boxes of COCO's ``instances_*.json``; the stem of ``file_name`` is the id of an image.

    Args:
        file: the file.
    """

    def __init__(self, file: str | Path) -> None:
        self.boxes = _read_boxes(file)

    def of(self, image_id: str, image: Tensor) -> tuple[Tensor, Tensor]:
        """Boxes x1, y1, x2, y2 as shares of an image (3, H, W), (R, 4), and their classes (R,).

        Raises:
            ValueError: when the image has no boxes.
        """
        if image_id not in self.boxes:
            raise ValueError(f"extractor.boxes has no box of the image '{image_id}'")
        boxes, labels = zip(*self.boxes[image_id], strict=True)
        height, width = image.shape[1:]
        shares = torch.tensor(boxes, device=image.device) / torch.tensor(
            [width, height] * 2, device=image.device
        )
        return shares.clamp(0, 1), torch.tensor(labels, device=image.device)


@reads("COCO's instances")
def _read_boxes(file: str | Path) -> dict[str, list[tuple[list[float], int]]]:
    """Boxes x1, y1, x2, y2 in pixels and their classes, by the id of the image."""
    content = read_object(Path(file))
    names = image_names(content.objects('images'))
    boxes = defaultdict(list)
    for index, instance in enumerate(content.objects('annotations')):
        left, top, width, height = read_box(instance.items('bbox'), f'annotation {index}')
        box = [left, top, left + width, top + height]
        image_id = image_stem(names[known_image(instance, names)])
        boxes[image_id].append((box, instance.integer('category_id')))
    return boxes


def labelled_regions(features: Tensor, boxes: Tensor, scores: Tensor, labels: Tensor) -> Regions:
    """Regions (R, F) with boxes (R, 4), and with classes and their scores (R,); no attributes."""
    mask = torch.ones(len(boxes), dtype=torch.bool, device=boxes.device)
    none = torch.zeros_like(labels)
    found = ObjectLabels(labels, scores, none, none.float())
    return Regions(features, mask, boxes, found)
