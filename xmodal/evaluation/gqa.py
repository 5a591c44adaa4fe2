"""GQA: the figures of its official evaluation."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from xmodal.datasets.gqa import gqa_answer_type
from xmodal.evaluation.classification import check_identifiers
from xmodal.evaluation.task import TaskMetric
from xmodal.files import read_json
from xmodal.registry import METRICS


class GqaQuestion(NamedTuple):
    """What the evaluation asks of a question.

    Attributes:
        answer: the true one; None where it is unknown, and every answer is wrong.
        structural: 'query', 'verify', 'logical', 'choose' or 'compare'; None where a file does not
            tell, as LXMERT's.
        semantic: 'obj', 'attr', 'cat', 'rel' or 'global'; None as well.
        detailed: finer type; answers to "Common" ones are names of attributes.
        group: questions whose answers are counted together; None for none.
        balanced: whether it is of the balanced set, which alone counts for most figures.
        entailed: ids of other questions whose answers follow from this one's.
    """

    answer: str | None
    structural: str | None = None
    semantic: str | None = None
    detailed: str = ''
    group: str | None = None
    balanced: bool = True
    entailed: tuple[str, ...] = ()


Choices = Mapping[str, Mapping[str, list[str]]]


def gqa_scores(
    predicted: Mapping[str, str],
    questions: Mapping[str, GqaQuestion],
    choices: Choices | None = None,
) -> dict[str, float]:
    """The figures of the official script, in percent but for the distribution.

    ``accuracy`` over the balanced questions; ``binary`` and ``open`` of them, and
    ``structural_NAME`` and ``semantic_NAME``, where types are known; ``distribution``, the mean
    χ² between the counts of true and predicted answers of a group, divided by 100: less is better;
    ``consistency``, where all entailed questions are there, how many of those that are entailed by
    a question are right when it is, averaged over the balanced questions answered rightly;
    ``validity`` and ``plausibility``, where choices are given: answers that the question allows,
    and that make sense in the world.

    Args:
        predicted: answers by question id.
        questions: by question id.
        choices: ``{id: {"valid": […], "plausible": […]}}``, ``{val,testdev}_choices.json``.

    Raises:
        ValueError: when answers are missing or of unknown questions, or choices are missing.
    """
    check_identifiers(predicted, questions)
    balanced = {number: question for number, question in questions.items() if question.balanced}
    if not balanced:
        raise ValueError('no question is of the balanced set (isBalanced), over which GQA counts')
    right = {number: predicted[number] == question.answer for number, question in questions.items()}
    hits: dict[str, list[float]] = defaultdict(list)
    for number, question in balanced.items():
        hits['accuracy'].append(right[number])
        if question.structural:
            hits[gqa_answer_type(question.structural)].append(right[number])
            hits[f'structural_{question.structural}'].append(right[number])
        if question.semantic:
            hits[f'semantic_{question.semantic}'].append(right[number])
    if choices is not None:
        check_identifiers(dict.fromkeys(choices.keys() & balanced.keys()), balanced)
        for number, question in balanced.items():
            for name, key in (('validity', 'valid'), ('plausibility', 'plausible')):
                allowed = choices[number][key]
                if 'Common' in question.detailed:
                    allowed = ('color', 'material', 'shape')
                hits[name].append(predicted[number] in allowed)
    if all(other in questions for question in balanced.values() for other in question.entailed):
        hits['consistency'] = [
            fmean(right[other] for other in question.entailed)
            for number, question in balanced.items()
            if question.entailed and right[number]
        ]
    scores = {name: 100 * fmean(found) for name, found in hits.items() if found}
    grouped = {number: question for number, question in balanced.items() if question.group}
    if grouped:
        scores['distribution'] = _distribution(predicted, grouped) / 100
    return scores


def _distribution(predicted: Mapping[str, str], questions: Mapping[str, GqaQuestion]) -> float:
    """χ² = Σ (predicted − true)² / true over the true answers; mean of groups by their size."""
    true, found = defaultdict(Counter), defaultdict(Counter)
    for number, question in questions.items():
        true[question.group][question.answer] += 1
        found[question.group][predicted[number]] += 1
    total = 0.0
    for group, counts in true.items():
        chi_square = sum((found[group][answer] - n) ** 2 / n for answer, n in counts.items())
        total += chi_square * counts.total()
    return total / len(questions)


@METRICS.register_module()
class GqaMetric(TaskMetric):
    """:func:`gqa_scores`; without answers only predictions are written.

    Data samples have ``predicted``, ``question_id``, ``answers`` (the true one) and ``gqa``. Of
    LXMERT's files, which have no ``gqa``, the accuracy is known.

    Args:
        choices: GQA's file of choices, for validity and plausibility; None for neither.
        save_predictions: file for the test server, ``[{"questionId", "prediction"}, …]``.

    Raises:
        FileNotFoundError: when ``choices`` is not there.
    """

    default_prefix = 'gqa'

    def __init__(self, choices: str | None = None, save_predictions: str | None = None) -> None:
        super().__init__(save_predictions)
        if choices and not Path(choices).is_file():
            raise FileNotFoundError(f'evaluator.choices: {choices} is not there (docs/regions.md)')
        self.choices = choices

    def record(self, sample: dict) -> dict:
        """The answer, and what it is compared with."""
        names = ('question_id', 'predicted', 'answers')
        return {**{name: sample[name] for name in names}, 'gqa': sample.get('gqa', {})}

    def submission(self, records: list[dict]) -> list[dict]:
        """What the test server takes."""
        return [
            {'questionId': record['question_id'], 'prediction': record['predicted']}
            for record in records
        ]

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """Scores; none where no answer is known.

        Raises:
            ValueError: when two questions have the same id.
        """
        if not any(record['answers'] for record in records):
            return {}
        questions = {
            record['question_id']: GqaQuestion(next(iter(record['answers']), None), **record['gqa'])
            for record in records
        }
        if len(questions) < len(records):
            raise ValueError(f'{len(records)} questions have {len(questions)} different ids')
        choices = read_json(self.choices) if self.choices else None
        predicted = {record['question_id']: record['predicted'] for record in records}
        return gqa_scores(predicted, questions, choices)
