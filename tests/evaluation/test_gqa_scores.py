"""GQA's figures, against a literal reading of its official evaluation."""

import json
import random
from collections import defaultdict

import pytest

from xmodal.errors import FileError
from xmodal.evaluation import GqaMetric, GqaQuestion, gqa_scores

ANSWERS = ('yes', 'no', 'red', 'blue', 'dog')
STRUCTURES = ('query', 'verify', 'logical', 'choose', 'compare')


def random_questions(seed, count=60):
    """Questions, predictions and choices."""
    rng = random.Random(seed)
    names = [str(number) for number in range(count)]
    questions = {
        name: GqaQuestion(
            rng.choice(ANSWERS),
            rng.choice(STRUCTURES),
            rng.choice(('obj', 'attr')),
            rng.choice(('relS', 'attrCommon', 'Common')),
            rng.choice((None, 'colour', 'animal')),
            rng.random() < 0.7,
            tuple(set(rng.sample(names, rng.choice((0, 1, 3)))) - {name}),
        )
        for name in names
    }
    predicted = {
        name: q.answer if rng.random() < 0.5 else rng.choice((*ANSWERS, 'shape', 'cat'))
        for name, q in questions.items()
    }
    choices = {
        name: {key: rng.sample(ANSWERS, 3) for key in ('valid', 'plausible')} for name in names
    }
    return questions, predicted, choices


def official(questions, predicted, choices):
    """The official script's arithmetic, step by step."""
    scores, gold, guessed = defaultdict(list), {}, {}
    for number, question in questions.items():
        if not question.balanced:
            continue
        correct = predicted[number] == question.answer
        scores['accuracy'].append(float(correct))
        scores['open' if question.structural == 'query' else 'binary'].append(float(correct))
        scores[f'structural_{question.structural}'].append(float(correct))
        scores[f'semantic_{question.semantic}'].append(float(correct))
        for metric, key in (('validity', 'valid'), ('plausibility', 'plausible')):
            group = choices[number][key]
            if 'Common' in question.detailed:
                group = ['color', 'material', 'shape']
            scores[metric].append(float(predicted[number] in group))
        if question.group is not None:
            for counts, answer in ((gold, question.answer), (guessed, predicted[number])):
                counts_of_group = counts.setdefault(question.group, {})
                counts_of_group[answer] = counts_of_group.get(answer, 0) + 1
        entailed = [other for other in question.entailed if other != number]
        if correct and entailed:
            right = [float(predicted[other] == questions[other].answer) for other in entailed]
            scores['consistency'].append(sum(right) / len(right))
    result = {name: 100 * sum(values) / len(values) for name, values in scores.items()}
    sum_score, sum_overall = 0, 0
    for group, expected in gold.items():
        score, overall = 0, 0
        for answer, e in expected.items():
            o = guessed[group].get(answer, 0)
            score += (float(o - e) ** 2) / e
            overall += e
        sum_score += score * overall
        sum_overall += overall
    return {**result, 'distribution': sum_score / sum_overall / 100}


@pytest.mark.parametrize('seed', range(5))
def test_all_figures_are_those_of_the_official_script(seed):
    questions, predicted, choices = random_questions(seed)
    expected = official(questions, predicted, choices)
    assert gqa_scores(predicted, questions, choices) == pytest.approx(expected)


def test_scores_of_a_small_example():
    questions = {
        'q': GqaQuestion('red', 'query', 'attr', group='colour', entailed=('a', 'b')),
        'p': GqaQuestion('blue', 'query', 'attr', group='colour'),
        'a': GqaQuestion('yes', 'verify', 'attr', balanced=False),
        'b': GqaQuestion('no', 'verify', 'attr', balanced=False),
        'v': GqaQuestion('yes', 'verify', 'obj'),
    }
    predicted = {'q': 'red', 'p': 'red', 'a': 'yes', 'b': 'yes', 'v': 'yes'}
    actual = gqa_scores(predicted, questions)
    assert actual['accuracy'] == pytest.approx(200 / 3)
    assert (actual['open'], actual['binary'], actual['consistency']) == (50, 100, 50)
    # red: once true and twice said, blue: once true and never said: (1 + 1) / 100
    assert actual['distribution'] == pytest.approx(0.02)
    assert 'validity' not in actual


def test_consistency_is_left_out_if_entailed_questions_are_missing():
    questions = {'q': GqaQuestion('red', 'query', 'attr', entailed=('gone',))}
    assert 'consistency' not in gqa_scores({'q': 'red'}, questions)


@pytest.mark.parametrize(
    ('predicted', 'message'),
    [({'1': 'yes'}, r'1 are missing \(2\)'), ({'1': 'a', '2': 'b', '3': 'c'}, r'unknown .*\(3\)')],
)
def test_missing_and_unknown_answers_are_refused(predicted, message):
    with pytest.raises(ValueError, match=message):
        gqa_scores(predicted, {'1': GqaQuestion('yes'), '2': GqaQuestion('no')})


def sample(index, predicted, answers, **gqa):
    fields = {'question_id': str(index), 'predicted': predicted, 'answers': answers}
    return {'sample_index': index, **fields, **({'gqa': gqa} if gqa else {})}


def evaluate(metric, samples):
    metric.process({}, samples)
    return metric.evaluate(len(samples))


def test_the_metric_scores_samples_and_writes_the_file_of_the_server(tmp_path):
    file = tmp_path / 'testdev.json'
    samples = [
        sample(0, 'red', ['red'], structural='query'),
        sample(1, 'no', ['yes'], structural='verify'),
    ]
    actual = evaluate(GqaMetric(save_predictions=str(file)), samples)
    assert actual['gqa/accuracy'] == 50
    assert (actual['gqa/open'], actual['gqa/binary']) == (100, 0)
    assert json.loads(file.read_text()) == [
        {'questionId': '0', 'prediction': 'red'},
        {'questionId': '1', 'prediction': 'no'},
    ]


def test_without_types_only_the_accuracy_is_computed_and_an_empty_label_is_wrong():
    samples = [sample(0, 'red', ['red']), sample(1, 'no', [])]
    assert evaluate(GqaMetric(), samples) == {'gqa/accuracy': 50}


def test_without_answers_nothing_is_scored():
    assert evaluate(GqaMetric(), [sample(0, 'red', [])]) == {}


@pytest.mark.parametrize(
    ('choices', 'message'),
    [
        ([], 'expected an object|found'),
        ({'0': {'question': 'what?'}}, "'valid'|valid"),
        ({'0': {'valid': 'red', 'plausible': ['red']}}, 'valid'),
        ({'7': {'valid': ['red'], 'plausible': ['red']}}, 'no choices of 1 of 1 .* 0: is it of'),
    ],
)
def test_a_file_that_has_other_choices_or_none_is_named(tmp_path, choices, message):
    file = tmp_path / 'choices.json'
    file.write_text(json.dumps(choices))
    samples = [sample(0, 'red', ['red']), sample(1, 'no', ['yes'], balanced=False)]
    with pytest.raises(FileError, match=rf'choices\.json cannot be read.*({message})'):
        evaluate(GqaMetric(choices=str(file)), samples)


def test_choices_of_a_file_are_those_of_the_balanced_questions(tmp_path):
    file = tmp_path / 'choices.json'
    kinds = {'valid': ['blue'], 'plausible': ['red', 'blue']}
    file.write_text(json.dumps({'0': kinds, 'of another': {}}))
    samples = [sample(0, 'red', ['blue']), sample(1, 'no', ['yes'], balanced=False)]
    scores = evaluate(GqaMetric(choices=str(file)), samples)
    assert (scores['gqa/validity'], scores['gqa/plausibility']) == (0, 100)


def test_a_missing_file_of_choices_is_an_error_at_once():
    with pytest.raises(FileNotFoundError, match='evaluator.choices: nowhere.json'):
        GqaMetric(choices='nowhere.json')
