"""Visual question answering: the accuracy of VQA's official evaluation."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from xmodal.datasets.answers import normalize_answer
from xmodal.evaluation.task import TaskMetric
from xmodal.registry import METRICS


class HumanAnswers(NamedTuple):
    """What people answered to a question.

    Attributes:
        answers: one a person.
        group: what accuracies are apart by: its answer type, or its question type.
    """

    answers: Sequence[str]
    group: str


def vqa_accuracy(answer: str, human_answers: Sequence[str]) -> float:
    """How far an answer agrees with people's, 0 to 1.

    Of ten people each in turn is left out; with n of the other nine giving the answer it scores
    min(1, n / 3), and the mean counts. As in the official script, answers are normalised only where
    people differ. Where one person alone answered, it is 1 for the same answer and else 0, since
    nobody would be left.
    """
    answer, *human_answers = (_one_line(text) for text in (answer, *human_answers))
    if len(set(human_answers)) > 1:
        answer, *human_answers = (normalize_answer(text) for text in (answer, *human_answers))
    agreeing = human_answers.count(answer)
    if len(human_answers) == 1:
        return float(agreeing)
    return fmean(min(1, (agreeing - (own == answer)) / 3) for own in human_answers)


def _one_line(text: str) -> str:
    return text.replace('\n', ' ').replace('\t', ' ').strip()


def score_submission(
    submission: Iterable[Mapping], references: Mapping[int, HumanAnswers]
) -> dict[str, float]:
    """Accuracies in percent, ``overall`` and of each group.

    Args:
        submission: ``{'question_id', 'answer'}`` of each question.
        references: people's answers by question id.

    Raises:
        ValueError: when a question is answered twice, not at all, or is unknown.
    """
    answers: dict[int, str] = {}
    for item in submission:
        if item['question_id'] in answers:
            raise ValueError(f'question_id {item["question_id"]} is answered twice')
        answers[item['question_id']] = item['answer']
    if unknown := sorted(answers.keys() - references.keys()):
        raise ValueError(
            f'{len(unknown)} answers are to unknown questions, for instance question_id '
            f'{unknown[0]}: do the answers belong to these annotations?'
        )
    if missing := sorted(references.keys() - answers.keys()):
        raise ValueError(
            f'{len(missing)} of {len(references)} questions are not answered, for instance '
            f'question_id {missing[0]}'
        )
    groups: dict[str, list[float]] = {}
    for number, (human_answers, group) in references.items():
        groups.setdefault(group, []).append(vqa_accuracy(answers[number], human_answers))
    overall = fmean(score for scores in groups.values() for score in scores)
    by_group = {group: 100 * fmean(groups[group]) for group in sorted(filter(None, groups))}
    return {'overall': 100 * overall, **by_group}


@METRICS.register_module()
class VqaMetric(TaskMetric):
    """:func:`score_submission` by answer type; without annotations only predictions are written.

    Data samples have ``predicted``, ``question_id``, ``human_answers`` and ``answer_type``.

    Args:
        save_predictions: file for the test server, ``[{"question_id", "answer"}, …]``.
    """

    default_prefix = 'vqa'

    def record(self, sample: dict) -> dict:
        """The answer, and what it is compared with."""
        names = ('question_id', 'predicted', 'human_answers', 'answer_type')
        return {name: sample[name] for name in names}

    def submission(self, records: list[dict]) -> list[dict]:
        """What the test server takes."""
        return [
            {'question_id': record['question_id'], 'answer': record['predicted']}
            for record in records
        ]

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """Accuracies; none where nobody's answers are known."""
        references = {
            record['question_id']: HumanAnswers(record['human_answers'], record['answer_type'])
            for record in records
        }
        if not any(answers for answers, _ in references.values()):
            return {}
        return score_submission(self.submission(records), references)


@METRICS.register_module()
class SoftAnswerMetric(VqaMetric):
    """LXMERT's accuracy: the score that the question's label gives to the answer, 0 if none.

    For files that have scores in the place of people's answers (``LxmertQuestionDataset``); ten
    people's answers, scored this way, give :func:`vqa_accuracy`. A question whose label is empty
    counts 0. Data samples have ``predicted``, ``question_id``, ``answers``, ``answer_weights`` and
    ``answer_type``.

    Args:
        **others: see :class:`VqaMetric`.
    """

    def record(self, sample: dict) -> dict:
        """The answer, and the scores of answers."""
        names = ('question_id', 'predicted', 'answers', 'answer_weights', 'answer_type')
        return {name: sample[name] for name in names}

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """``overall`` and by answer type, in percent; none where no question has a label."""
        if not any(record['answers'] for record in records):
            return {}
        groups: dict[str, list[float]] = {'overall': []}
        for record in records:
            label = dict(zip(record['answers'], record['answer_weights'], strict=True))
            score = 100 * label.get(record['predicted'], 0.0)
            groups['overall'].append(score)
            if record['answer_type']:
                groups.setdefault(record['answer_type'], []).append(score)
        return {group: fmean(scores) for group, scores in groups.items()}
