"""VQA's accuracy against the official arithmetic."""

import math
from itertools import combinations

import pytest

from xmodal.datasets.answers import normalize_answer
from xmodal.evaluation.vqa import HumanAnswers, VqaMetric, score_submission, vqa_accuracy


def answers(count, right='dog', others=('cat',)):
    """Ten answers, ``count`` of them right."""
    return [right] * count + [others[i % len(others)] for i in range(10 - count)]


def over_subsets(answer, people):
    """The paper's words: the mean over all sets of nine people of min(1, those who agree / 3)."""
    nines = list(combinations(people, 9))
    return sum(min(1, nine.count(answer) / 3) for nine in nines) / len(nines)


@pytest.mark.parametrize('count', range(11))
def test_every_level_of_agreement_is_the_mean_over_sets_of_nine(count):
    people = answers(count)
    assert vqa_accuracy('dog', people) == pytest.approx(over_subsets('dog', people))


@pytest.mark.parametrize(
    ('count', 'expected'), [(0, 0), (1, 0.3), (2, 0.6), (3, 0.9), (4, 1), (10, 1)]
)
def test_levels_of_agreement_have_the_known_values(count, expected):
    assert vqa_accuracy('dog', answers(count)) == pytest.approx(expected)


def test_of_two_answers_that_tie_both_score():
    people = ['dog'] * 5 + ['puppy'] * 5
    assert vqa_accuracy('dog', people) == vqa_accuracy('puppy', people) == 1


def test_where_people_differ_both_sides_are_normalised():
    people = ['The dog'] * 2 + ['dog.'] + ['a dog'] + ['cat'] * 6
    assert vqa_accuracy('Dog!', people) == 1
    assert vqa_accuracy('two', ['2'] * 3 + ['3'] * 7) == pytest.approx(0.9)


def test_where_all_people_agree_nothing_is_normalised():
    assert vqa_accuracy('two', ['2'] * 10) == 0
    assert vqa_accuracy(' 2\n', ['2\t'] * 10) == 1


def test_one_person_s_answer_is_right_or_wrong():
    assert vqa_accuracy('dog', ['dog']) == 1
    assert vqa_accuracy('cat', ['dog']) == 0


@pytest.fixture
def references():
    return {
        1: HumanAnswers(answers(10, 'yes', ('no',)), 'yes/no'),
        2: HumanAnswers(answers(2, '2', ('3',)), 'number'),
        3: HumanAnswers(answers(3, 'red', ('pink', 'rose')), 'other'),
        4: HumanAnswers(answers(0, 'blue', ('grey',)), 'other'),
    }


@pytest.fixture
def submission():
    given = {1: 'yes', 2: '2', 3: 'red', 4: 'blue'}
    return [{'question_id': number, 'answer': answer} for number, answer in given.items()]


def test_accuracy_is_the_mean_over_questions_and_by_answer_type(submission, references):
    scores = score_submission(submission, references)
    assert scores == pytest.approx(
        {'overall': 100 * (1 + 0.6 + 0.9 + 0) / 4, 'yes/no': 100, 'number': 60, 'other': 45}
    )


def test_questions_of_no_group_count_overall_alone(submission, references):
    expected = score_submission(submission, references)
    for absent in (None, ''):
        references[2] = references[2]._replace(group=absent)
        scores = score_submission(submission, references)
        assert scores == {name: expected[name] for name in ('overall', 'yes/no', 'other')}


def test_the_order_of_a_submission_does_not_matter(submission, references):
    scores = score_submission(submission, references)
    assert score_submission(submission[::-1], references) == scores


def test_a_missing_answer_is_an_error(submission, references):
    with pytest.raises(ValueError, match=r'4 predictions expected: 1 are missing \(3\)$'):
        score_submission(submission[:2] + submission[3:], references)


def test_an_answer_to_an_unknown_question_is_an_error(submission, references):
    with pytest.raises(ValueError, match=r'1 are unknown \(7\)$'):
        score_submission([*submission, {'question_id': 7, 'answer': 'x'}], references)


def test_a_question_answered_twice_is_an_error(submission, references):
    with pytest.raises(ValueError, match=r'1 are given twice \(2\)$'):
        score_submission([*submission, submission[1]], references)


def samples(references, given):
    return [
        {
            'sample_index': index,
            'question_id': number,
            'predicted': given[number],
            'human_answers': people,
            'answer_type': kind,
        }
        for index, (number, (people, kind)) in enumerate(references.items())
    ]


def test_the_metric_scores_data_samples_and_writes_what_the_server_takes(
    references, submission, tmp_path
):
    import json

    file = tmp_path / 'answers.json'
    metric = VqaMetric(save_predictions=str(file))
    given = {item['question_id']: item['answer'] for item in submission}
    metric.process({}, samples(references, given))
    scores = metric.evaluate(4)
    assert {f'vqa/{name}': s for name, s in score_submission(submission, references).items()} == (
        scores
    )
    assert json.loads(file.read_text()) == submission


def test_a_test_set_without_annotations_gives_a_submission_and_no_score(tmp_path):
    metric = VqaMetric(save_predictions=str(tmp_path / 'answers.json'))
    metric.process({}, samples({5: HumanAnswers([], '')}, {5: 'yes'}))
    assert metric.evaluate(1) == {}
    assert (tmp_path / 'answers.json').exists()


def test_questions_without_annotations_beside_others_are_answered_and_not_scored(tmp_path):
    file = tmp_path / 'answers.json'
    metric = VqaMetric(save_predictions=str(file))
    references = {5: HumanAnswers([], 'yes/no'), 6: HumanAnswers(['two'] * 10, 'number')}
    metric.process({}, samples(references, {5: 'yes', 6: 'two'}))
    assert metric.evaluate(2) == {'vqa/overall': 100, 'vqa/number': 100}
    assert len(file.read_text().split('question_id')) == 3
    records = [metric.record(sample) for sample in samples(references, {5: 'yes', 6: 'two'})]
    overall = metric.query_columns(records)['overall']  # of all queries, as their ids are
    assert math.isnan(overall[0]) and overall[1] == 100


def test_normalised_answers_of_annotations_score_as_they_are():
    people = ["don't know"] * 4 + ['2 dogs'] * 6
    assert [normalize_answer(answer) for answer in people] == people
    assert vqa_accuracy('dont know', people) == 1
