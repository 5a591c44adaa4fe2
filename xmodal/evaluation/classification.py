"""Accuracy of classification, and NLVR2's accuracy and consistency."""

from collections import defaultdict
from collections.abc import Mapping

from xmodal.datasets.entailment import ENTAILMENT_CLASSES
from xmodal.evaluation.task import (
    TaskMetric,
    check_identifiers,
    details,
    in_percent,
    percentage,
    where,
)
from xmodal.registry import METRICS


def consistency(
    predicted: Mapping[str, int], labels: Mapping[str, int], groups: Mapping[str, str]
) -> float:
    """Share of groups, in percent, in which all predictions are correct (NLVR2's script).

    Args:
        predicted: by identifier.
        labels: by identifier.
        groups: name of the group by identifier; in NLVR2 a group is the examples of one sentence.

    Raises:
        ValueError: when predictions are missing or have unknown identifiers.
    """
    check_identifiers(predicted, labels)
    correct: dict[str, bool] = defaultdict(lambda: True)
    for identifier, label in labels.items():
        correct[groups[identifier]] &= predicted[identifier] == label
    return percentage(list(correct.values()))


def probability_of_label(sample: dict) -> dict[str, float]:
    """The probability of the right class as ``score``, if the sample has probabilities."""
    if 'probabilities' not in sample:
        return {}
    return {'score': float(sample['probabilities'][sample['label']])}


@METRICS.register_module()
class EntailmentMetric(TaskMetric):
    """``accuracy`` on SNLI-VE, and ``accuracy_NAME`` of each class that occurs, in percent.

    A submission is a list of ``{"pairID", "prediction"}``.

    Args:
        **others: see :class:`TaskMetric`.
    """

    query_id = 'pair_id'

    def record(self, sample: dict) -> dict:
        """Prediction, label, its probability, and the id of the pair."""
        record = {name: sample[name] for name in ('predicted', 'label', 'pair_id')}
        return record | probability_of_label(sample)

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """Whether the prediction is right, over all pairs and those of each class."""
        hits = in_percent([record['predicted'] == record['label'] for record in records])
        labels = [record['label'] for record in records]
        by_class = {
            f'accuracy_{ENTAILMENT_CLASSES[label]}': where(hits, [one == label for one in labels])
            for label in sorted(set(labels))
        }
        return {'accuracy': hits, **by_class, **details(records)}

    def submission(self, records: list[dict]) -> list[dict]:
        """One prediction per pair."""
        return [
            {'pairID': record['pair_id'], 'prediction': ENTAILMENT_CLASSES[record['predicted']]}
            for record in records
        ]


@METRICS.register_module()
class ReasoningMetric(TaskMetric):
    """NLVR2's accuracy and consistency; label 1 is 'True'.

    A submission is the CSV of the official script: an identifier, and True or False.

    Args:
        **others: see :class:`TaskMetric`.
    """

    query_id = 'identifier'

    def record(self, sample: dict) -> dict:
        """Prediction, label, its probability, identifier and group."""
        record = {name: sample[name] for name in ('predicted', 'label', 'identifier', 'group')}
        record |= probability_of_label(sample)
        return {**record, 'query_group': str(record['group'] or record['identifier'])}

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """Whether the prediction is right."""
        hits = in_percent([record['predicted'] == record['label'] for record in records])
        return {'accuracy': hits, **details(records)}

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """``consistency`` in percent, if the annotations have groups.

        Raises:
            ValueError: when two samples have the same identifier.
        """
        predicted, labels, groups = (
            {record['identifier']: record[name] for record in records}
            for name in ('predicted', 'label', 'group')
        )
        if len(labels) < len(records):
            raise ValueError(
                f'{len(records)} samples have {len(labels)} different identifiers: does '
                'dataset.ann_file name a file twice?'
            )
        if not all(groups.values()):
            return {}
        return {'consistency': consistency(predicted, labels, groups)}

    def submission(self, records: list[dict]) -> str:
        """One line per prediction."""
        lines = (f'{record["identifier"]},{bool(record["predicted"])}\n' for record in records)
        return ''.join(lines)
