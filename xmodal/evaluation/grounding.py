"""Grounding: from a heat map to a box, and how often it is the right one."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from xmodal.evaluation.task import TaskMetric
from xmodal.registry import METRICS

LEAST_OVERLAP = 0.5


def as_tensor(boxes: Sequence) -> Tensor:
    """Boxes of a file as a tensor that keeps their decimals."""
    return torch.tensor(boxes, dtype=torch.float64)


def box_scores(heat: Tensor, boxes: Tensor) -> Tensor:
    """Heat within each box over the root of its area (ALBEF, Sec. 6): Σ heat / √area.

    Args:
        heat: (H, W).
        boxes: x, y, width and height in pixels, (K, 4), each with an area; what lies outside the
            image has no heat.

    Returns:
        (K,), in double precision.
    """
    height, width = heat.shape
    # Entry (r, c) is the sum over the rows above r and the columns before c.
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
    """First column and row, and those after the last, (K, 4) int64, of (K, 4) x, y, w, h."""
    corners = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1).long()
    return corners.clamp(min=0).minimum(corners.new_tensor([width, height, width, height]))


def choose_box(heat: Tensor, boxes: Tensor) -> int:
    """The place of the box with the best score, of several the first.

    Args:
        heat: (H, W).
        boxes: (K, 4), at least one.

    Raises:
        ValueError: when the map is not finite.
    """
    if not heat.isfinite().all():
        raise ValueError('a heat map is not finite: the weights of the model hold NaN or inf')
    return int(box_scores(heat, boxes).argmax())


def overlap(boxes: Tensor, truth: Tensor) -> Tensor:
    """Intersection over union as MAttNet computes it.

    The last pixel belongs to a box, and boxes that share a single row or column of pixels do not
    overlap.

    Args:
        boxes: x, y, width and height, (K, 4).
        truth: (4,).

    Returns:
        (K,), in double precision.
    """
    boxes, truth = boxes.double(), truth.double()
    first = boxes[:, :2].maximum(truth[:2])
    last = (boxes[:, :2] + boxes[:, 2:] - 1).minimum(truth[:2] + truth[2:] - 1)
    meet = (first < last).all(1)
    shared = torch.where(meet, (last - first + 1).prod(1), 0.0)
    return shared / (boxes[:, 2:].prod(1) + truth[2:].prod() - shared)


def points_at(heat: Tensor, box: Tensor) -> bool:
    """The pointing game: whether the hottest pixel lies in a box, (4,).

    A tie counts against us: of several, all must. A map of one value points nowhere.
    """
    left, top, right, bottom = _pixels(box[None], *heat.shape)[0]
    rows, columns = (heat == heat.max()).nonzero().unbind(1)
    inside = (columns >= left) & (columns < right) & (rows >= top) & (rows < bottom)
    return bool(inside.all())


def match_predictions(
    predictions: Iterable[dict], references: Sequence[dict]
) -> list[tuple[dict, dict]]:
    """Pairs predictions with what is true, by ``sent_id``.

    Raises:
        ValueError: names ids that are missing, unknown or twice there.
    """
    known = {reference['sent_id'] for reference in references}
    found: dict[int, dict] = {}
    twice, unknown = [], []
    for prediction in predictions:
        number = prediction['sent_id']
        (twice if number in found else unknown if number not in known else []).append(number)
        found[number] = prediction
    missing = sorted(known - found.keys())
    wrong = {'missing': missing, 'unknown': unknown, 'twice there': twice}
    if problems := [
        f'{len(ids)} {what}, for instance sent_id {ids[0]}' for what, ids in wrong.items() if ids
    ]:
        raise ValueError(
            f'the predictions do not fit the {len(known)} expressions: {"; ".join(problems)}'
        )
    return [(found[reference['sent_id']], reference) for reference in references]


def grounding_metrics(predictions: Iterable[dict], references: Sequence[dict]) -> dict[str, float]:
    """Share of right boxes, in percent, of each split.

    Args:
        predictions: ``sent_id`` and ``box``, of every expression.
        references: ``sent_id``, ``split`` and ``box``.

    Returns:
        ``SPLIT/accuracy``: how often the overlap is at least 0.5.

    Raises:
        ValueError: see :func:`match_predictions`.
    """
    right: dict[str, list[bool]] = defaultdict(list)
    for prediction, reference in match_predictions(predictions, references):
        found = overlap(as_tensor([prediction['box']]), as_tensor(reference['box']))
        right[reference['split']].append(found.item() >= LEAST_OVERLAP)
    return {f'{split}/accuracy': _percent(own) for split, own in right.items()}


def _percent(values: Sequence[float]) -> float:
    return 100 * sum(values) / len(values)


@METRICS.register_module()
class GroundingMetric(TaskMetric):
    """Accuracy of the chosen box, and the pointing game, of each split.

    A data sample has ``heat`` (H, W), ``chosen`` (a place in ``proposals``), and what
    :class:`xmodal.datasets.referring.ReferringDataset` gives in test mode. Beside the accuracy
    stands that of a proposal drawn at random, ``SPLIT/chance``.

    Args:
        save_predictions: JSON file for ``[{"sent_id", "ref_id", "box"}, …]``.
    """

    def record(self, sample: dict) -> dict:
        """The boxes, chosen and true, and what else is counted."""
        proposals, truth = as_tensor(sample['proposals']), as_tensor(sample['box'])
        fitting = overlap(proposals, truth) >= LEAST_OVERLAP
        return {
            **{name: sample[name] for name in ('sent_id', 'ref_id', 'split')},
            'box': sample['proposals'][sample['chosen']],
            'truth': sample['box'],
            'pointing': points_at(sample['heat'], truth),
            'chance': fitting.double().mean().item(),
        }

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """``SPLIT/accuracy``, ``SPLIT/pointing`` and ``SPLIT/chance``, in percent."""
        references = [{**record, 'box': record['truth']} for record in records]
        metrics = grounding_metrics(records, references)
        for split in dict.fromkeys(record['split'] for record in records):
            own = [record for record in records if record['split'] == split]
            for name in ('pointing', 'chance'):
                metrics[f'{split}/{name}'] = _percent([record[name] for record in own])
        return metrics

    def submission(self, records: list[dict]) -> list[dict]:
        """The chosen boxes."""
        return [{name: record[name] for name in ('sent_id', 'ref_id', 'box')} for record in records]
