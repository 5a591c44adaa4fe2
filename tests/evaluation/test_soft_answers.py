"""LXMERT's soft accuracy of answers."""

import json

import pytest

from xmodal.datasets.answers import answer_score
from xmodal.evaluation import SoftAnswerMetric, vqa_accuracy


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


@pytest.mark.parametrize('count', range(11))
def test_the_score_of_an_answer_is_its_accuracy_by_the_official_evaluation(count):
    people = ['cat'] * count + ['dog'] * (10 - count)
    assert answer_score(count, 10) == pytest.approx(vqa_accuracy('cat', people))
    assert answer_score(count, 10) == pytest.approx(min(1, 0.3 * count))


def test_one_person_s_answer_scores_1():
    assert answer_score(1, 1) == vqa_accuracy('cat', ['cat']) == 1
