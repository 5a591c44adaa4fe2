"""Accuracy, consistency and submissions of entailment and reasoning."""

import csv
import json

import pytest

from xmodal.datasets.entailment import ENTAILMENT_CLASSES
from xmodal.errors import ConfigError
from xmodal.evaluation.classification import (
    EntailmentMetric,
    ReasoningMetric,
    consistency,
)
from xmodal.evaluation.task import TaskMetric, check_identifiers


def test_accuracy_is_computed_overall_and_for_each_class_that_occurs():
    pairs = zip([0, 0, 2, 0, 2], [0, 0, 0, 2, 2], strict=True)
    metric = EntailmentMetric()
    metric.process(
        {},
        [
            {'sample_index': i, 'pair_id': f'{i}', 'predicted': predicted, 'label': label}
            for i, (predicted, label) in enumerate(pairs)
        ],
    )
    actual = metric.evaluate(5)
    first, _, last = (f'accuracy_{name}' for name in ENTAILMENT_CLASSES)
    assert actual == {'accuracy': 60, first: pytest.approx(200 / 3), last: 50}


class OwnMetric(TaskMetric):
    """A metric of a plug-in, without a submission."""

    def record(self, sample):
        return {'label': sample['label']}

    def compute_metrics(self, records):
        return {}


class Recordless(OwnMetric):
    """A metric of a plug-in that does not say what it keeps."""

    record = TaskMetric.record


class Scoreless(TaskMetric):
    """A metric of a plug-in that does not say how it scores."""

    record = OwnMetric.record


def test_predictions_that_a_metric_cannot_write_are_refused_before_the_test(tmp_path):
    with pytest.raises(ConfigError, match='OwnMetric.save_predictions=.*no method submission'):
        OwnMetric(save_predictions=str(tmp_path / 'new.json'))
    assert OwnMetric().save_predictions is None
    with pytest.raises(ConfigError, match=r'Recordless has no method record\(sample\)'):
        Recordless()
    with pytest.raises(ConfigError, match='Scoreless has no method query_columns'):
        Scoreless()


def official_nlvr2(predictions, examples):
    """The arithmetic of NLVR2's script: an example is (identifier, label as text)."""
    right, consistent = 0, {}
    for identifier, label in examples:
        parts = identifier.split('-')
        parts[2] = ''
        name = '-'.join(parts)
        consistent.setdefault(name, True)
        if predictions[identifier].lower() == label.lower():
            right += 1
        else:
            consistent[name] = False
    return right / len(examples), sum(consistent.values()) / len(consistent)


EXAMPLES = {
    # a sentence with all correct; another sentence of its set, one wrong; another set with a
    # single example; a sentence whose only prediction is wrong; the same set in another split
    'dev-850-0-0': (1, 1),
    'dev-850-1-0': (0, 0),
    'dev-850-2-0': (0, 0),
    'dev-850-3-0': (1, 1),
    'dev-850-0-1': (1, 1),
    'dev-850-1-1': (1, 0),
    'dev-9-2-0': (0, 0),
    'dev-10-0-0': (0, 1),
    'test1-850-0-0': (0, 1),
    'test1-850-1-0': (1, 1),
}


def samples(examples, group):
    return [
        {
            'sample_index': index,
            'predicted': predicted,
            'label': label,
            'identifier': identifier,
            'group': group(identifier),
        }
        for index, (identifier, (predicted, label)) in enumerate(examples.items())
    ]


def sentence_of(identifier):
    split, image_set, _, sentence = identifier.split('-')
    return f'{split}-{image_set}-{sentence}'


def test_accuracy_and_consistency_of_nlvr2_agree_with_the_official_arithmetic():
    metric = ReasoningMetric()
    metric.process({}, samples(EXAMPLES, sentence_of))
    actual = metric.evaluate(len(EXAMPLES))
    said = {identifier: str(bool(guess)) for identifier, (guess, _) in EXAMPLES.items()}
    labels = [(identifier, str(bool(label))) for identifier, (_, label) in EXAMPLES.items()]
    accuracy, consistent = official_nlvr2(said, labels)
    assert (accuracy, consistent) == (0.7, 2 / 5)
    assert actual == pytest.approx({'accuracy': 70, 'consistency': 40})


def test_all_statements_of_a_presentation_of_nlvr_are_one_group():
    """NLVR's script: one wrong order of the boxes of one statement spoils the presentation."""
    examples = {f'dev-{n}-{m}-{k}': (1, 1) for n in (4, 5) for m in (0, 1) for k in range(6)}
    examples['dev-5-1-3'] = (0, 1)
    metric = ReasoningMetric()
    metric.process({}, samples(examples, lambda name: '-'.join(name.split('-')[:2])))
    assert metric.evaluate(24) == pytest.approx({'accuracy': 100 * 23 / 24, 'consistency': 50})


def test_without_groups_there_is_no_consistency():
    metric = ReasoningMetric()
    metric.process({}, samples(EXAMPLES, lambda _: ''))
    assert set(metric.evaluate(len(EXAMPLES))) == {'accuracy'}


def test_an_identifier_that_occurs_twice_is_an_error():
    twice = samples(EXAMPLES, sentence_of)
    twice[1]['identifier'] = twice[0]['identifier']
    metric = ReasoningMetric()
    metric.process({}, twice)
    with pytest.raises(ValueError, match='10 samples have 9 different identifiers'):
        metric.evaluate(len(twice))


@pytest.mark.parametrize(
    ('predicted', 'message'),
    [
        ({'a': 1}, r'3 predictions expected: 2 are missing \(b, c\)$'),
        (dict(a=1, b=1, c=0, d=0), r'1 are unknown \(d\)$'),
        (dict(a=1, b=1, e=0), r'1 are missing \(c\); 1 are unknown \(e\)$'),
    ],
)
def test_missing_and_unknown_predictions_are_named(predicted, message):
    labels = dict(a=1, b=0, c=1)
    with pytest.raises(ValueError, match=message):
        check_identifiers(predicted, labels)
    with pytest.raises(ValueError, match=message):
        consistency(predicted, labels, dict.fromkeys(labels, 'one'))


def test_the_submission_of_nlvr2_is_the_official_csv(tmp_path):
    file = tmp_path / 'test1.csv'
    metric = ReasoningMetric(save_predictions=str(file))
    metric.process({}, samples(EXAMPLES, sentence_of))
    metric.evaluate(len(EXAMPLES))
    with open(file) as lines:
        said = dict(csv.reader(lines))
    assert said == {name: str(bool(guess)) for name, (guess, _) in EXAMPLES.items()}


def entailment_samples():
    pairs = [(2, 2), (0, 2), (1, 1), (1, 0), (0, 0), (2, 2), (1, 1)]
    return [
        {'sample_index': index, 'predicted': guess, 'label': label, 'pair_id': f'{index}.jpg#0r1'}
        for index, (guess, label) in enumerate(pairs)
    ]


def test_entailment_is_scored_overall_and_by_label():
    metric = EntailmentMetric()
    metric.process({}, entailment_samples())
    assert metric.evaluate(7) == pytest.approx(
        {
            'accuracy': 100 * 5 / 7,
            'accuracy_contradiction': 50,
            'accuracy_neutral': 100,
            'accuracy_entailment': 200 / 3,
        }
    )


def test_entailment_predictions_name_pair_and_label(tmp_path):
    file = tmp_path / 'predictions.json'
    metric = EntailmentMetric(save_predictions=str(file))
    metric.process({}, entailment_samples())
    metric.evaluate(7)
    actual = json.loads(file.read_text())
    assert actual[0] == {'pairID': '0.jpg#0r1', 'prediction': 'entailment'}
    assert [item['pairID'] for item in actual] == [f'{n}.jpg#0r1' for n in range(7)]


def test_two_ranks_score_as_one_even_if_they_share_samples(monkeypatch):
    whole, shared = EntailmentMetric(), EntailmentMetric()
    whole.process({}, entailment_samples())
    mine, others = entailment_samples()[::2], [*entailment_samples()[1::2], entailment_samples()[0]]
    shared.process({}, others)
    theirs = shared.results
    shared.results = []
    shared.process({}, mine)
    monkeypatch.setattr('xmodal.evaluation.task.all_gather_object', lambda mine: [mine, theirs])
    actual = shared.evaluate(7)
    monkeypatch.undo()
    assert actual == whole.evaluate(7)


def test_samples_without_a_prediction_are_an_error():
    metric = EntailmentMetric()
    metric.process({}, entailment_samples()[:5])
    with pytest.raises(ValueError, match='5 predictions for 7 samples'):
        metric.evaluate(7)
