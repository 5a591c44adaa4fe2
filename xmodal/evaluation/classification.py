"""Accuracy of classification, and NLVR2's accuracy and consistency."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from xmodal.datasets.entailment import ENTAILMENT_CLASSES
from xmodal.evaluation.task import TaskMetric
from xmodal.registry import METRICS


def class_accuracies(
    predicted: Sequence[int], labels: Sequence[int], classes: Sequence[str]
) -> dict[str, float]:
    """Share of right predictions in percent, over all and over those of each class that occurs.

    Args:
        predicted: places in ``classes``.
        labels: places in ``classes``.
        classes: names.

    Returns:
        ``accuracy`` and ``accuracy_NAME``.
    """
    right = defaultdict(list)
    for guess, label in zip(predicted, labels, strict=True):
        right[label].append(guess == label)
    found = {'accuracy': _percent([hit for hits in right.values() for hit in hits])}
    return found | {f'accuracy_{classes[label]}': _percent(right[label]) for label in sorted(right)}


def consistency(
    predicted: Mapping[str, int], labels: Mapping[str, int], groups: Mapping[str, str]
) -> float:
    """Share of groups, in percent, all of whose predictions are right (NLVR2's script).

    Args:
        predicted: by identifier.
        labels: by identifier.
        groups: name of the group by identifier; in NLVR2 the examples of one sentence.

    Raises:
        ValueError: when predictions are missing, or are of unknown identifiers.
    """
    check_identifiers(predicted, labels)
    right: dict[str, bool] = defaultdict(lambda: True)
    for identifier, label in labels.items():
        right[groups[identifier]] &= predicted[identifier] == label
    return _percent(list(right.values()))


def check_identifiers(predicted: Mapping[str, object], expected: Mapping[str, object]) -> None:
    """Compares the keys of predictions with those of the annotations.

    Raises:
        ValueError: names some that are missing or unknown.
    """
    problems = {
        'missing': sorted(expected.keys() - predicted.keys()),
        'of unknown identifiers': sorted(predicted.keys() - expected.keys()),
    }
    found = [
        f'{len(names)} are {what} ({", ".join(names[:3])}{", …" if len(names) > 3 else ""})'
        for what, names in problems.items()
        if names
    ]
    if found:
        raise ValueError(f'{len(expected)} predictions expected: {"; ".join(found)}')


@METRICS.register_module()
class EntailmentMetric(TaskMetric):
    """Accuracy on SNLI-VE, over all and by label.

    A submission is a list of ``{"pairID", "prediction"}``.

    Args:
        **others: see :class:`TaskMetric`.
    """

    def record(self, sample: dict) -> dict:
        """Prediction, label and the pair's id."""
        return {name: sample[name] for name in ('predicted', 'label', 'pair_id')}

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """See :func:`class_accuracies`."""
        columns = ([record[name] for record in records] for name in ('predicted', 'label'))
        return class_accuracies(*columns, ENTAILMENT_CLASSES)

    def submission(self, records: list[dict]) -> list[dict]:
        """A prediction a pair."""
        return [
            {'pairID': record['pair_id'], 'prediction': ENTAILMENT_CLASSES[record['predicted']]}
            for record in records
        ]


@METRICS.register_module()
class ReasoningMetric(TaskMetric):
    """NLVR2's accuracy and consistency; label 1 is 'True'.

    A submission is the CSV of the official script: identifier, True or False.

    Args:
        **others: see :class:`TaskMetric`.
    """

    def record(self, sample: dict) -> dict:
        """Prediction, label, identifier and group."""
        return {name: sample[name] for name in ('predicted', 'label', 'identifier', 'group')}

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """``accuracy`` and, where the annotations have groups, ``consistency``; in percent.

        Raises:
            ValueError: when two samples have one identifier.
        """
        predicted, labels, groups = (
            {record['identifier']: record[name] for record in records}
            for name in ('predicted', 'label', 'group')
        )
        if len(labels) < len(records):
            raise ValueError(
                f'{len(records)} samples have {len(labels)} identifiers: is an annotation file in '
                'dataset.ann_file twice?'
            )
        hits = [predicted[identifier] == label for identifier, label in labels.items()]
        metrics = {'accuracy': _percent(hits)}
        if all(groups.values()):
            metrics['consistency'] = consistency(predicted, labels, groups)
        return metrics

    def submission(self, records: list[dict]) -> str:
        """A line a prediction."""
        lines = (f'{record["identifier"]},{bool(record["predicted"])}\n' for record in records)
        return ''.join(lines)


def _percent(hits: list[bool]) -> float:
    return 100 * sum(hits) / len(hits)
