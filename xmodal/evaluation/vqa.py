"""Visual question answering: the accuracy of VQA's official evaluation."""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from statistics import fmean
from typing import NamedTuple

from xmodal.datasets.answers import normalize_answer
from xmodal.evaluation.task import TaskMetric, check_identifiers, details, in_percent, where
from xmodal.registry import METRICS


class HumanAnswers(NamedTuple):
    """The human answers to a question.

    Attributes:
        answers: one per person.
        group: of the question in the accuracies by group: its answer type or question type.
    """

    answers: Sequence[str]
    group: str


def vqa_accuracy(answer: str, human_answers: Sequence[str]) -> float:
    """Agreement of an answer with the human answers, from 0 to 1.

    Each of the ten people is left out in turn: if n of the other nine gave the answer, it scores
    min(1, n / 3). The accuracy is the mean. As in the official script, answers are normalised only
    if the human answers differ. With one human answer it is 1 for the same answer, and 0 otherwise.
    """
    answer, *human_answers = (_one_line(text) for text in (answer, *human_answers))
    if len(set(human_answers)) > 1:
        answer, *human_answers = (normalize_answer(text) for text in (answer, *human_answers))
    agreeing = human_answers.count(answer)
    if len(human_answers) == 1:
        return float(agreeing)
    return fmean(min(1, (agreeing - (other == answer)) / 3) for other in human_answers)


def _one_line(text: str) -> str:
    return text.replace('\n', ' ').replace('\t', ' ').strip()


def score_submission(
    submission: Iterable[Mapping], references: Mapping[int, HumanAnswers]
) -> dict[str, float]:
    """Accuracies in percent, ``overall`` and for each group.

    Args:
        submission: ``{'question_id', 'answer'}`` for each question.
        references: human answers by question id.

    Raises:
        ValueError: when a question is answered twice, is not answered, or is unknown.
    """
    pairs = [(item['question_id'], item['answer']) for item in submission]
    check_identifiers([question_id for question_id, _ in pairs], references)
    answers = dict(pairs)
    groups: dict[str, list[float]] = {}
    for question_id, (human_answers, group) in references.items():
        accuracy = vqa_accuracy(answers[question_id], human_answers)
        groups.setdefault(group, []).append(accuracy)
    overall = fmean(score for scores in groups.values() for score in scores)
    by_group = {group: 100 * fmean(groups[group]) for group in sorted(filter(None, groups))}
    return {'overall': 100 * overall, **by_group}


@METRICS.register_module()
class VqaMetric(TaskMetric):
    """:func:`vqa_accuracy`, ``overall`` and by answer type, of the questions that have answers.

    Without annotations it only writes predictions. Data samples have ``predicted``,
    ``question_id``, ``human_answers`` and ``answer_type``.

    Args:
        save_predictions: a file for the test server, ``[{"question_id", "answer"}, …]``.
    """

    default_prefix = 'vqa'
    query_id = 'question_id'
    truth = 'human_answers'

    def record(self, sample: dict) -> dict:
        """The predicted answer with its probability, and the human answers."""
        names = ('question_id', 'predicted', 'human_answers', 'answer_type')
        return {name: sample[name] for name in names} | probability_of_answer(sample)

    def submission(self, records: list[dict]) -> list[dict]:
        """The format of the test server."""
        return [
            {'question_id': record['question_id'], 'answer': record['predicted']}
            for record in records
        ]

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """The accuracy of each known answer, over all questions and by answer type."""
        pairs = [(record['predicted'], record['human_answers']) for record in records]
        if not any(people for _, people in pairs):
            return {}
        scores = [vqa_accuracy(answer, people) if people else nan for answer, people in pairs]
        return by_answer_type(records, scores)


def by_answer_type(records: list[dict], scores: list[float]) -> dict[str, list[float]]:
    """Scores from 0 to 1 in percent: ``overall``, and those of the questions of each type.

    A score is NaN where nobody knows the answer; a type without other scores has no column. The
    probability of the answer given comes with them, where all records have it.
    """
    overall, types = in_percent(scores), [record['answer_type'] for record in records]
    known = {kind for kind, score in zip(types, scores, strict=True) if not isnan(score)}
    groups = {
        group: where(overall, [one == group for one in types])
        for group in sorted(filter(None, known))
    }
    return {'overall': overall, **groups, **details(records)}


def probability_of_answer(sample: dict) -> dict[str, float]:
    """The probability of the answer given as ``score``, if the sample has it."""
    for answer, probability in sample.get('top_answers', ()):
        if answer == sample['predicted']:
            return {'score': float(probability)}
    return {}


@METRICS.register_module()
class SoftAnswerMetric(VqaMetric):
    """LXMERT's accuracy: the score of the answer in the question's label, 0 if it has none.

    For files with scores instead of human answers (``LxmertQuestionDataset``). Ten human answers
    that are turned into scores give :func:`vqa_accuracy`. A question with an empty label counts 0.
    Data samples have ``predicted``, ``question_id``, ``answers``, ``answer_weights`` and
    ``answer_type``.

    Args:
        **others: see :class:`VqaMetric`.
    """

    truth = 'answers'

    def record(self, sample: dict) -> dict:
        """The predicted answer with its probability, and the scores of the label."""
        names = ('question_id', 'predicted', 'answers', 'answer_weights', 'answer_type')
        return {name: sample[name] for name in names} | probability_of_answer(sample)

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """The score of each answer, over all questions and by answer type."""
        if not any(record['answers'] for record in records):
            return {}
        labels = [dict(zip(r['answers'], r['answer_weights'], strict=True)) for r in records]
        scores = [
            label.get(record['predicted'], 0.0)
            for label, record in zip(labels, records, strict=True)
        ]
        return by_answer_type(records, scores)
