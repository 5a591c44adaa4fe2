"""LXMERT's soft accuracy of answers."""

import json

import pytest

from xmodal.datasets.answers import answer_score
from xmodal.evaluation import GqaMetric, SoftAnswerMetric, VqaMetric, vqa_accuracy


def sample(index, predicted, label, answer_type=''):
    return {
        'sample_index': index,
        'question_id': 100 + index,
        'predicted': predicted,
        'answers': list(label),
        'answer_weights': list(label.values()),
        'answer_type': answer_type,
    }


def evaluate(samples, **options):
    metric = SoftAnswerMetric(**options)
    metric.process({}, samples)
    return metric.evaluate(len(samples))


def test_the_score_of_the_label_counts_and_an_empty_label_is_0():
    actual = evaluate(
        [
            sample(0, 'yes', {'yes': 1.0, 'no': 0.3}, 'yes/no'),
            sample(1, 'no', {'yes': 0.9, 'no': 0.6}, 'yes/no'),
            sample(2, '3', {'2': 1.0}, 'number'),
            sample(3, 'dog', {}, 'other'),
        ]
    )
    assert actual == {
        'vqa/overall': pytest.approx(40),
        'vqa/yes/no': pytest.approx(80),
        'vqa/number': 0,
        'vqa/other': 0,
    }


def test_a_test_set_without_labels_gives_the_file_alone(tmp_path):
    file = tmp_path / 'test.json'
    assert evaluate([sample(0, 'yes', {})], save_predictions=str(file)) == {}
    assert json.loads(file.read_text()) == [{'question_id': 100, 'answer': 'yes'}]


@pytest.mark.parametrize('metric_type', [VqaMetric, SoftAnswerMetric, GqaMetric])
def test_a_test_that_would_report_and_write_nothing_says_so_at_its_first_batch(
    tmp_path, monkeypatch, metric_type
):
    warned = []
    monkeypatch.setattr(
        'xmodal.evaluation.task.print_log', lambda text, _, level: warned.append(text)
    )
    unknown = {**sample(0, 'yes', {}), 'human_answers': [], 'gqa': {}}
    known = {**sample(1, 'yes', {'yes': 1.0}), 'human_answers': ['yes'], 'gqa': {}}
    for metric, batch in (
        (metric_type(save_predictions=str(tmp_path / 'answers.json')), [unknown]),
        (metric_type(), [unknown, known]),
    ):
        metric.process({}, batch)
    assert not warned
    metric = metric_type()
    metric.process({}, [unknown])
    metric.process({}, [{**unknown, 'sample_index': 1}])
    assert len(warned) == 1 and 'test_evaluator.save_predictions=FILE' in warned[0]


@pytest.mark.parametrize('count', range(11))
def test_the_score_of_an_answer_is_its_accuracy_by_the_official_evaluation(count):
    people = ['cat'] * count + ['dog'] * (10 - count)
    assert answer_score(count, 10) == pytest.approx(vqa_accuracy('cat', people))
    assert answer_score(count, 10) == pytest.approx(min(1, 0.3 * count))


def test_one_person_s_answer_scores_1():
    assert answer_score(1, 1) == vqa_accuracy('cat', ['cat']) == 1
