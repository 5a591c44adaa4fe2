"""Grounding: the box chosen by a heat map, and its accuracy."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from xmodal.evaluation.task import (
    TaskMetric,
    check_identifiers,
    in_percent,
    means,
    percentage,
    where,
)
from xmodal.registry import METRICS

IOU_THRESHOLD = 0.5


def box_tensor(boxes: Sequence) -> Tensor:
    """Boxes of an annotation file, (K, 4) or (4,), in double precision."""
    return torch.tensor(boxes, dtype=torch.float64)


def box_scores(heat: Tensor, boxes: Tensor) -> Tensor:
    """Heat inside each box, divided by the root of its area (ALBEF, Sec. 6): Σ heat / √area.

    Args:
        heat: (H, W).
        boxes: x, y, width and height in pixels, (K, 4), each with an area above 0. Outside the
            image there is no heat.

    Returns:
        (K,), in double precision.
    """
    height, width = heat.shape
    # Entry (r, c) is the sum of the rows above r and the columns left of c.
    integral = pad(heat.double().cumsum(0).cumsum(1), (1, 0, 1, 0))
    left, top, right, bottom = _pixels(boxes, height, width).unbind(1)
    inside = (
        integral[bottom, right]
        - integral[top, right]
        - integral[bottom, left]
        + integral[top, left]
    )
    return inside / (boxes[:, 2].double() * boxes[:, 3].double()).sqrt()


def _pixels(boxes: Tensor, height: int, width: int) -> Tensor:
    """First column and row, and the ends (exclusive), (K, 4) int64, of (K, 4) x, y, w, h."""
    corners = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1).long()
    return corners.clamp(min=0).minimum(corners.new_tensor([width, height, width, height]))


def choose_box(heat: Tensor, boxes: Tensor) -> int:
    """Index of the box with the best score; the first of equal ones.

    Args:
        heat: (H, W).
        boxes: (K, 4), at least one.

    Raises:
        ValueError: when a value of the map is not finite.
    """
    if not heat.isfinite().all():
        raise ValueError('a heat map is not finite: the weights of the model hold NaN or inf')
    return int(box_scores(heat, boxes).argmax())


def box_iou(boxes: Tensor, truth: Tensor) -> Tensor:
    """Intersection over union, as MAttNet computes it.

    A box includes its last pixel, and boxes that share only one row or column of pixels do not
    overlap.

    Args:
        boxes: x, y, width and height, (K, 4).
        truth: the true box, (4,).

    Returns:
        (K,), in double precision.
    """
    boxes, truth = boxes.double(), truth.double()
    first = boxes[:, :2].maximum(truth[:2])
    last = (boxes[:, :2] + boxes[:, 2:] - 1).minimum(truth[:2] + truth[2:] - 1)
    overlap = (first < last).all(1)
    intersection = torch.where(overlap, (last - first + 1).prod(1), 0.0)
    return intersection / (boxes[:, 2:].prod(1) + truth[2:].prod() - intersection)


def pointing_hit(heat: Tensor, box: Tensor) -> bool:
    """The pointing game: whether the hottest pixel is inside a box, (4,).

    Ties count against the model: all of the hottest pixels must be inside. So a constant map never
    hits.
    """
    left, top, right, bottom = _pixels(box[None], *heat.shape)[0]
    rows, columns = (heat == heat.max()).nonzero().unbind(1)
    inside = (columns >= left) & (columns < right) & (rows >= top) & (rows < bottom)
    return bool(inside.all())


def grounding_metrics(predictions: Iterable[dict], references: Sequence[dict]) -> dict[str, float]:
    """Accuracy of the predicted boxes, in percent, for each split.

    Args:
        predictions: ``sent_id`` and ``box`` of every expression.
        references: ``sent_id``, ``split`` and ``box`` of every expression.

    Returns:
        ``SPLIT/accuracy``: the share of boxes with an IoU of at least 0.5.

    Raises:
        ValueError: when expressions have no prediction, or two, or predictions no expression.
    """
    pairs = [(prediction['sent_id'], prediction['box']) for prediction in predictions]
    check_identifiers(
        [sent_id for sent_id, _ in pairs], [reference['sent_id'] for reference in references]
    )
    boxes, hits = dict(pairs), defaultdict(list)
    for reference in references:
        predicted = box_tensor([boxes[reference['sent_id']]])
        iou = box_iou(predicted, box_tensor(reference['box']))
        hits[reference['split']].append(iou.item() >= IOU_THRESHOLD)
    return {f'{split}/accuracy': percentage(values) for split, values in hits.items()}


@METRICS.register_module()
class GroundingMetric(TaskMetric):
    """Accuracy of the chosen box, and the pointing game, for each split.

    A data sample has ``heat`` (H, W), ``chosen`` (an index of ``proposals``), and the fields of
    :class:`xmodal.datasets.referring.ReferringDataset` in test mode. ``SPLIT/chance`` is the
    accuracy of a proposal that is chosen at random.

    Args:
        save_predictions: a JSON file for ``[{"sent_id", "ref_id", "box"}, …]``.
    """

    query_id = 'sent_id'

    def record(self, sample: dict) -> dict:
        """The chosen and the true box, and the hits."""
        proposals, truth = box_tensor(sample['proposals']), box_tensor(sample['box'])
        hits = box_iou(proposals, truth) >= IOU_THRESHOLD
        return {
            **{name: sample[name] for name in ('sent_id', 'ref_id', 'split')},
            'box': sample['proposals'][sample['chosen']],
            'truth': sample['box'],
            'pointing': pointing_hit(sample['heat'], truth),
            'chance': hits.double().mean().item(),
        }

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """``SPLIT/chance``, in percent."""
        return means(_by_split(records, {'chance': [record['chance'] for record in records]}))

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """The hits of each split, and the IoU of the chosen box as ``score``."""
        ious = [
            box_iou(box_tensor([record['box']]), box_tensor(record['truth'])).item()
            for record in records
        ]
        hits = {
            'accuracy': [iou >= IOU_THRESHOLD for iou in ious],
            'pointing': [record['pointing'] for record in records],
        }
        return {'score': ious, **_by_split(records, hits)}

    def submission(self, records: list[dict]) -> list[dict]:
        """The chosen boxes."""
        return [{name: record[name] for name in ('sent_id', 'ref_id', 'box')} for record in records]


def _by_split(records: list[dict], hits: dict[str, list[float]]) -> dict[str, list[float]]:
    """Hits from 0 to 1 in percent, those of each split by ``SPLIT/NAME``."""
    splits = [record['split'] for record in records]
    return {
        f'{split}/{name}': where(in_percent(values), [one == split for one in splits])
        for split in dict.fromkeys(splits)
        for name, values in hits.items()
    }
