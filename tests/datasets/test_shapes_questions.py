"""Questions about the embedded world: true, balanced, and answered by people."""

import json
import re
from collections import Counter

import pytest

from xmodal.datasets.answers import normalize_answer
from xmodal.datasets.shapes.exporters import TASK_WORDS
from xmodal.datasets.shapes.grammar import vocabulary
from xmodal.datasets.shapes.questions import answer_list, write_questions
from xmodal.datasets.shapes.scene import (
    COLOURS,
    OPPOSITE,
    SHAPES,
    SPLITS,
    direction,
    is_held_out,
    sample_scene,
)
from xmodal.evaluation.vqa import vqa_accuracy

COUNT = 150
SAID = {
    'left of': ('to the left of', 'left of'),
    'right of': ('to the right of', 'right of'),
    'above': ('above', 'over'),
    'below': ('below', 'under'),
}
LOOKS = {
    'small': 'small',
    'little': 'small',
    'large': 'large',
    'big': 'large',
    'plain': 'solid',
    'striped': 'striped',
    'dotted': 'dotted',
    'spotted': 'dotted',
}


@pytest.fixture(scope='module')
def asked():
    """(split, scene, question, answers) of the first scenes of each split."""
    return [
        (split, scene, question, answers)
        for split in SPLITS
        for scene in (sample_scene(0, split, index) for index in range(COUNT))
        for question, answers in write_questions(split, scene)
    ]


def fits(thing, phrase):
    """Whether all words of a noun phrase are true of a thing."""
    looks = {thing.shape, thing.colour, thing.size, thing.texture, 'thing'}
    return all(LOOKS.get(word, word) in looks for word in phrase.split())


def split_at_direction(text):
    """What stands before a direction, the direction, and what stands after."""
    for name, wordings in SAID.items():
        for wording in wordings:
            if found := re.fullmatch(f'(.*?) ?{wording} the (.*)', text):
                return found[1], name, found[2]
    return text, None, None


def answers_of(scene, text):
    """Every answer to a question that a scene allows, read from the words alone."""
    things = scene.things
    if found := re.fullmatch('is there an? (.*)', text):
        return {'yes' if any(fits(thing, found[1]) for thing in things) else 'no'}
    if found := re.fullmatch('how many (.*) are there', text):
        noun = re.sub('(cross)es|(?<=[a-z])s$', r'\1', found[1])
        return {str(sum(fits(thing, noun) for thing in things))}
    start, name, other = split_at_direction(text)
    if name:
        others = [thing for thing in things if fits(thing, other)]
        assert len(others) == 1, text
        things = [t for t in things if t is not others[0] and direction(t, others[0]) == name]
    if found := re.fullmatch('is the (.*)', start):
        return {'yes' if any(fits(thing, found[1]) for thing in things) else 'no'}
    if start == 'how many things are':
        return {str(len(things))}
    if start == 'what is':
        return {f'{thing.colour} {thing.shape}' for thing in things}
    attribute, noun = re.fullmatch('what (colour|shape) is the (.*)', start).groups()
    return {getattr(thing, attribute) for thing in things if fits(thing, noun)}


def test_every_question_has_one_answer_and_it_is_true(asked):
    for _, scene, question, _ in asked:
        assert answers_of(scene, question.text) == {question.answer}, question.text


def test_ten_people_answer_and_the_true_answer_scores_full(asked):
    for _, _, question, answers in asked:
        assert len(answers) == 10
        assert vqa_accuracy(question.answer, answers) == 1
        assert all(vqa_accuracy(a, answers) < 1 or a == question.answer for a in set(answers))


def test_people_disagree_now_and_then_at_every_level(asked):
    agreeing = Counter(answers.count(question.answer) for _, _, question, answers in asked)
    assert set(agreeing) == {7, 8, 9, 10}
    assert agreeing[10] > agreeing[7]


def test_yes_and_no_are_as_frequent_for_each_type_of_question(asked):
    for kind in ('is there', 'is the'):
        given = Counter(q.answer for _, _, q, _ in asked if q.question_type == kind)
        share = given['yes'] / given.total()
        # Three standard deviations of a fair coin.
        assert abs(share - 0.5) < 1.5 / given.total() ** 0.5, kind


def test_all_types_of_questions_and_answers_are_asked(asked):
    types = Counter(question.question_type for _, _, question, _ in asked)
    assert set(types) == {
        'is there',
        'is the',
        'how many',
        'how many things are',
        'what colour is the',
        'what shape is the',
        'what is',
    }
    assert min(types.values()) > 0.02 * types.total()
    assert {question.answer_type for _, _, question, _ in asked} == {'yes/no', 'number', 'other'}
    assert all(question.text.startswith(question.question_type) for _, _, question, _ in asked)


def test_most_questions_of_all_but_existence_and_counts_need_a_relation(asked):
    for kind in ('is the', 'what is', 'how many things are'):
        texts = [q.text for _, _, q, _ in asked if q.question_type == kind]
        assert all(split_at_direction(text)[1] for text in texts)
    texts = [q.text for _, _, q, _ in asked if q.question_type == 'what colour is the']
    assert sum(bool(split_at_direction(text)[1]) for text in texts) > 0.5 * len(texts)


def test_training_asks_nothing_of_a_held_out_composition_or_its_reverse(asked):
    kinds = {f'{colour} {shape}' for colour in COLOURS for shape in SHAPES}

    def kind(phrase):
        found = ' '.join(phrase.split()[-2:])
        assert found in kinds
        colour, shape = found.split()
        return type('Kind', (), {'colour': colour, 'shape': shape})

    in_test = 0
    for split, _, question, _ in asked:
        if question.question_type == 'is the':
            first, name, second = split_at_direction(question.text.removeprefix('is the '))
            pair = kind(first), kind(second)
            held_out = any(is_held_out(pair[0], each, pair[1]) for each in (name, OPPOSITE[name]))
            assert split == 'test' or not held_out, question.text
            in_test += held_out
    assert in_test > 10


def test_words_and_answers_are_known(asked):
    words = {*vocabulary(), *(word for own in TASK_WORDS for word in own)}
    assert len(words) <= 128
    listed = answer_list()
    assert len(set(listed)) == len(listed)
    for _, _, question, answers in asked:
        assert words.issuperset(question.text.split())
        assert set(answers) <= set(listed)
    assert all(words.issuperset(answer.split()) for answer in listed)
    assert all(normalize_answer(answer) == answer for answer in listed)


def test_the_same_scene_gives_the_same_questions():
    scene = sample_scene(0, 'train', 3)
    assert write_questions('train', scene) == write_questions('train', scene)


def test_files_are_those_of_vqa_v2(tiny_world):
    for split in SPLITS:
        asked = json.loads((tiny_world / 'vqa' / f'questions_{split}.json').read_text())
        given = json.loads((tiny_world / 'vqa' / f'annotations_{split}.json').read_text())
        assert set(asked) == {'info', 'task_type', 'data_type', 'data_subtype', 'questions'}
        assert asked['data_subtype'] == given['data_subtype'] == split
        ids = [item['question_id'] for item in asked['questions']]
        assert len(set(ids)) == len(ids)
        assert ids == [item['question_id'] for item in given['annotations']]
        for question, annotation in zip(asked['questions'], given['annotations'], strict=True):
            assert set(question) == {'image_id', 'question', 'question_id'}
            assert question['question'].endswith('?')
            assert question['image_id'] == annotation['image_id']
            assert set(annotation) == {
                'question_type',
                'multiple_choice_answer',
                'answers',
                'image_id',
                'answer_type',
                'question_id',
            }
            people = [answer['answer'] for answer in annotation['answers']]
            assert Counter(people).most_common(1)[0][0] == annotation['multiple_choice_answer']
            assert [answer['answer_id'] for answer in annotation['answers']] == list(range(1, 11))
    assert json.loads((tiny_world / 'vqa' / 'answer_list.json').read_text()) == answer_list()
