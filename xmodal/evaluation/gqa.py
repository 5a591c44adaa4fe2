"""GQA: the metrics of its official evaluation."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from xmodal.datasets.gqa import gqa_answer_type
from xmodal.evaluation.gqa_grounding import SceneGraphs
from xmodal.evaluation.task import TaskMetric, check_identifiers, details, in_percent, where
from xmodal.evaluation.vqa import probability_of_answer
from xmodal.fields import read_object
from xmodal.files import reads
from xmodal.registry import METRICS


class GqaQuestion(NamedTuple):
    """What the evaluation needs to know of a question.

    Attributes:
        answer: the true answer; None if it is unknown, so that every answer is wrong.
        structural: 'query', 'verify', 'logical', 'choose' or 'compare'; None if the file does not
            have it, as with LXMERT's files.
        semantic: 'obj', 'attr', 'cat', 'rel' or 'global'; None if the file does not have it.
        detailed: finer type; the answers to "Common" types are names of attributes.
        group: group of questions whose answers are counted together; None for no group.
        balanced: whether it is in the balanced set; most metrics use only this set.
        entailed: ids of other questions whose answers follow from the answer to this one.
        objects: ids, in the scene graph, of the objects that the question and its full answer name;
            None if the file does not have them.
    """

    answer: str | None
    structural: str | None = None
    semantic: str | None = None
    detailed: str = ''
    group: str | None = None
    balanced: bool = True
    entailed: tuple[str, ...] = ()
    objects: tuple[str, ...] | None = None


Choices = Mapping[str, Mapping[str, list[str]]]


def gqa_scores(
    predicted: Mapping[str, str],
    questions: Mapping[str, GqaQuestion],
    choices: Choices | None = None,
    grounding: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """The metrics of the official script, in percent except for the distribution.

    * ``accuracy``: over the balanced questions; ``binary``, ``open``, ``structural_NAME`` and
      ``semantic_NAME``: over the balanced questions of a type, if types are known.
    * ``distribution``: mean χ² between the counts of true and predicted answers in a group, divided
      by 100; lower is better.
    * ``consistency``: accuracy on the questions entailed by a correctly answered balanced question,
      averaged over such questions; only if all entailed questions are present.
    * ``validity`` and ``plausibility``: answers that the question allows, and answers that make
      sense in the world; only if choices are given.
    * ``grounding``: mean attention on the named objects; only if it is given. It may exceed 100.

    Args:
        predicted: answers by question id.
        questions: by question id.
        choices: ``{id: {"valid": […], "plausible": […]}}``, ``{val,testdev}_choices.json``.
        grounding: :func:`xmodal.evaluation.gqa_grounding.gqa_grounding` by question id.

    Raises:
        ValueError: when answers or choices are missing, or answers have unknown questions.
    """
    check_identifiers(predicted, questions)
    balanced = {name: question for name, question in questions.items() if question.balanced}
    if not balanced:
        raise ValueError('no question is in the balanced set (isBalanced), which GQA evaluates')
    correct = {name: predicted[name] == question.answer for name, question in questions.items()}
    hits: dict[str, list[float]] = defaultdict(list)
    for name, question in balanced.items():
        for metric in _metrics_of(question):
            hits[metric].append(correct[name])
    if choices is not None:
        check_identifiers(choices.keys() & balanced.keys(), balanced)
        for name, question in balanced.items():
            for metric, key in (('validity', 'valid'), ('plausibility', 'plausible')):
                allowed = choices[name][key]
                if 'Common' in question.detailed:
                    allowed = ('color', 'material', 'shape')
                hits[metric].append(predicted[name] in allowed)
    if grounding is not None:
        hits['grounding'] = [grounding[name] for name in balanced]
    if all(other in questions for question in balanced.values() for other in question.entailed):
        hits['consistency'] = [
            fmean(correct[other] for other in question.entailed)
            for name, question in balanced.items()
            if question.entailed and correct[name]
        ]
    scores = {metric: 100 * fmean(values) for metric, values in hits.items() if values}
    grouped = {name: question for name, question in balanced.items() if question.group}
    if grouped:
        scores['distribution'] = _distribution(predicted, grouped) / 100
    return scores


def _metrics_of(question: GqaQuestion) -> list[str]:
    """The accuracies that a question counts in."""
    if not question.balanced:
        return []
    metrics = ['accuracy']
    if question.structural:
        metrics += [gqa_answer_type(question.structural), f'structural_{question.structural}']
    if question.semantic:
        metrics.append(f'semantic_{question.semantic}')
    return metrics


def _distribution(predicted: Mapping[str, str], questions: Mapping[str, GqaQuestion]) -> float:
    """χ² = Σ (predicted − true)² / true over the true answers; mean over groups by size."""
    true_counts, predicted_counts = defaultdict(Counter), defaultdict(Counter)
    for name, question in questions.items():
        true_counts[question.group][question.answer] += 1
        predicted_counts[question.group][predicted[name]] += 1
    total = 0.0
    for group, counts in true_counts.items():
        guesses = predicted_counts[group]
        chi_square = sum((guesses[answer] - n) ** 2 / n for answer, n in counts.items())
        total += chi_square * counts.total()
    return total / len(questions)


@reads('{"question id": {"valid": ["answer", …], "plausible": ["answer", …]}, …}')
def read_choices(file: str | Path, names: Collection[str]) -> Choices:
    """The choices of some questions in ``{val,testdev}_choices.json``.

    Args:
        file: the file, which may have other questions as well.
        names: ids of the questions.

    Raises:
        FileError: when the file has another layout, or lacks one of the questions.
    """
    content = read_object(file)
    if missing := [name for name in names if name not in content]:
        raise ValueError(
            f'it has no choices of {len(missing)} of {len(names)} balanced questions, for instance '
            f'{missing[0]}: is it of the split of dataset.ann_file?'
        )
    keys = ('valid', 'plausible')
    return {name: {key: content.object(name).texts(key) for key in keys} for name in names}


def _question(record: dict) -> GqaQuestion:
    """The question of a record of :class:`GqaMetric`."""
    return GqaQuestion(next(iter(record['answers']), None), **record['gqa'])


@METRICS.register_module()
class GqaMetric(TaskMetric):
    """:func:`gqa_scores`; without answers it only writes predictions.

    Data samples have ``predicted``, ``question_id``, ``answers`` (the true one) and ``gqa``.
    LXMERT's files have no ``gqa``, and only the accuracy is computed.

    Args:
        choices: GQA's file of choices, for validity and plausibility; None to leave them out.
        save_predictions: a file for the test server, ``[{"questionId", "prediction"}, …]``.
        scene_graphs: GQA's file of scene graphs, for the grounding score; None to leave it out.
            Samples then also have ``attention``, which ``LxmertVQA(report_attention=True)`` sets.

    Raises:
        FileNotFoundError: when ``choices`` or ``scene_graphs`` does not exist.
    """

    default_prefix = 'gqa'
    query_id = 'question_id'
    truth = 'answers'

    def __init__(
        self,
        choices: str | None = None,
        save_predictions: str | None = None,
        scene_graphs: str | None = None,
    ) -> None:
        super().__init__(save_predictions)
        if choices and not Path(choices).is_file():
            raise FileNotFoundError(
                f'evaluator.choices: {choices} does not exist (docs/regions.md)'
            )
        self.choices = choices
        self.scene_graphs = SceneGraphs(scene_graphs) if scene_graphs else None

    def record(self, sample: dict) -> dict:
        """The predicted answer with its probability, the true one, and what else is scored."""
        names = ('question_id', 'predicted', 'answers')
        record = {**{name: sample[name] for name in names}, 'gqa': sample.get('gqa', {})}
        record |= probability_of_answer(sample)
        if self.scene_graphs:
            record['grounding'] = self.scene_graphs.score(sample)
        return record

    def submission(self, records: list[dict]) -> list[dict]:
        """The format of the test server."""
        return [
            {'questionId': record['question_id'], 'prediction': record['predicted']}
            for record in records
        ]

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """Whether the answer to each balanced question is right, over all of them and by type."""
        if not any(record['answers'] for record in records):
            return {}
        questions = [_question(record) for record in records]
        pairs = zip(records, questions, strict=True)
        hits = in_percent([record['predicted'] == question.answer for record, question in pairs])
        kinds = [_metrics_of(question) for question in questions]
        columns = {
            name: where(hits, [name in kind for kind in kinds])
            for name in dict.fromkeys(name for kind in kinds for name in kind)
        }
        return columns | details(records)

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """Scores; none if no answer is known.

        Raises:
            ValueError: when two questions have the same id, or ``choices`` cannot be read.
        """
        if not any(record['answers'] for record in records):
            return {}
        questions = {record['question_id']: _question(record) for record in records}
        if len(questions) < len(records):
            raise ValueError(f'{len(records)} questions have {len(questions)} different ids')
        balanced = [name for name, question in questions.items() if question.balanced]
        choices = read_choices(self.choices, balanced) if self.choices else None
        predicted = {record['question_id']: record['predicted'] for record in records}
        grounding = None
        if self.scene_graphs:
            grounding = {record['question_id']: record['grounding'] for record in records}
        return gqa_scores(predicted, questions, choices, grounding)
