"""GQA's grounding score: how much of a model's attention is on the objects of a question.

As GQA's ``eval.py`` computes it with ``--grounding --objectFeatures``. Two places of it need a
reading. Its regions are those in the file of attentions: the script reads a variable that it never
sets. A question about the whole scene does not name the whole image: the script looks for "scene"
among the keys of the question's steps, which never have it.
"""

from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from xmodal.datasets.boxes import MAX_SIDE
from xmodal.fields import Fields, read_object
from xmodal.files import explain_errors


def gqa_grounding(attention: Tensor, objects: Tensor) -> float:
    """Attention on objects: Σ_o Σ_r a_r · |r ∩ o| / |r|, over objects o and regions r.

    An object that is named twice counts twice, and so does a place where two objects are: the sum
    may exceed 1.

    Args:
        attention: box of each region as x1, y1, x2, y2, and a_r, (R, 5).
        objects: boxes of the named objects, (K, 4), in the same unit.

    Returns:
        The sum; 0 without objects. A region without area is on no object.
    """
    regions, weights = attention[:, None, :4].double(), attention[:, 4].double()
    first = regions[..., :2].maximum(objects[:, :2])
    last = regions[..., 2:].minimum(objects[:, 2:])
    intersections = (last - first).clamp(min=0).prod(-1)  # (R, K)
    areas = (regions[..., 2:] - regions[..., :2]).prod(-1).clamp(min=torch.finfo().tiny)
    return float(weights @ (intersections / areas).sum(1))


def _box(item: Fields, width: int, height: int) -> tuple[float, ...]:
    """x1, y1, x2, y2 as shares of the image."""
    x, y = (item.number(key, -MAX_SIDE, MAX_SIDE) for key in 'xy')
    w, h = (item.number(key, 0, MAX_SIDE) for key in 'wh')
    return x / width, y / height, (x + w) / width, (y + h) / height


class SceneGraphs:
    """Grounding scores of predictions, by GQA's scene graphs.

    Args:
        file: ``{train,val}_sceneGraphs.json``.

    Raises:
        FileNotFoundError: when the file does not exist.
    """

    def __init__(self, file: str) -> None:
        self.file = Path(file)
        if not self.file.is_file():
            raise FileNotFoundError(
                f'evaluator.scene_graphs: {file} does not exist. GQA has scene graphs of train and '
                'val; `xmodal make-shapes` writes those of the embedded world: build a world '
                'without them again, in a new folder'
            )

    @cached_property
    def _boxes(self) -> dict[str, dict[str, tuple[float, ...]]]:
        """x1, y1, x2, y2 as shares of the image, by image and object."""
        layout = '{"image": {"width", "height", "objects": {"id": {"x", "y", "w", "h"}}}}'
        boxes = {}
        with explain_errors(self.file, layout, lambda: f' after {len(boxes)} images'):
            graphs = read_object(self.file)
            for image in graphs:
                graph = graphs.object(image)
                size = graph.integer('width', low=1), graph.integer('height', low=1)
                objects = graph.object('objects')
                boxes[image] = {name: _box(objects.object(name), *size) for name in objects}
        return boxes

    def score(self, sample: dict) -> float:
        """:func:`gqa_grounding` of a prediction.

        Args:
            sample: ``image_path``, ``attention`` (see :func:`gqa_grounding`, boxes as shares of the
                image), ``gqa`` with the ``objects`` that question and answer name, and
                ``question_id``.

        Raises:
            ValueError: when the model reported no attention, the question has no annotations, or
                the file lacks the image or an object.
        """
        name, image = sample['question_id'], Path(sample['image_path']).stem
        objects = sample.get('gqa', {}).get('objects')
        if 'attention' not in sample:
            raise ValueError(
                'evaluator.scene_graphs needs the attention of each prediction, and the model '
                'reports none: set model.report_attention=True (LxmertVQA)'
            )
        if objects is None:
            raise ValueError(
                f'question {name} has no "annotations" of the objects that it names, which '
                "evaluator.scene_graphs needs: test on GQA's own files of val, or on an embedded "
                'world that this version of xmodal built'
            )
        boxes = self._boxes.get(image, {})
        if missing := [other for other in objects if other not in boxes]:
            raise ValueError(
                f'question {name} names object {missing[0]} of image {image}, which {self.file} '
                'does not have: are questions and scene graphs of the same split?'
            )
        truth = torch.tensor([boxes[other] for other in objects], dtype=torch.float64)
        return gqa_grounding(sample['attention'], truth.view(-1, 4))
