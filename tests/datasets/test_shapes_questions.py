"""Questions about the embedded world: true, balanced, and answered by people."""

import json
import re
from collections import Counter

import pytest

from xmodal.datasets.answers import normalize_answer
from xmodal.datasets.shapes.exporters import TASK_WORDS
from xmodal.datasets.shapes.grammar import vocabulary
from xmodal.datasets.shapes.questions import answer_list
from xmodal.datasets.shapes.scene import (
    COLOURS,
    OPPOSITE,
    SHAPES,
    SPLITS,
    direction,
    is_held_out,
    sample_scene,
)
from xmodal.datasets.shapes.vqa import generate_questions
from xmodal.evaluation.vqa import vqa_accuracy

COUNT = 150
WORDINGS = {
    'left of': ('to the left of', 'left of'),
    'right of': ('to the right of', 'right of'),
    'above': ('above', 'over'),
    'below': ('below', 'under'),
}
SYNONYMS = {
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
def questions():
    """Split, scene, question and answers of the first scenes of each split."""
    return [
        (split, scene, question, answers)
        for split in SPLITS
        for scene in (sample_scene(0, split, index) for index in range(COUNT))
        for question, answers in generate_questions(split, scene)
    ]


def fits(obj, phrase):
    """Whether every word of a noun phrase is true of an object."""
    attributes = {obj.shape, obj.colour, obj.size, obj.texture, 'thing'}
    return all(SYNONYMS.get(word, word) in attributes for word in phrase.split())


def split_at_direction(text):
    """The words before a direction, the direction, and the words after it."""
    for name, wordings in WORDINGS.items():
        for wording in wordings:
            if match := re.fullmatch(f'(.*?) ?{wording} the (.*)', text):
                return match[1], name, match[2]
    return text, None, None


def answers_of(scene, text):
    """All correct answers to a question about a scene, by its words alone."""
    objects = scene.objects
    if match := re.fullmatch('is there an? (.*)', text):
        return {'yes' if any(fits(obj, match[1]) for obj in objects) else 'no'}
    if match := re.fullmatch('how many (.*) are there', text):
        noun = re.sub('(cross)es|(?<=[a-z])s$', r'\1', match[1])
        return {str(sum(fits(obj, noun) for obj in objects))}
    start, name, other = split_at_direction(text)
    if name:
        others = [obj for obj in objects if fits(obj, other)]
        assert len(others) == 1, text
        objects = [t for t in objects if t is not others[0] and direction(t, others[0]) == name]
    if match := re.fullmatch('is the (.*)', start):
        return {'yes' if any(fits(obj, match[1]) for obj in objects) else 'no'}
    if start == 'how many things are':
        return {str(len(objects))}
    if start == 'what is':
        return {f'{obj.colour} {obj.shape}' for obj in objects}
    attribute, noun = re.fullmatch('what (colour|shape) is the (.*)', start).groups()
    return {getattr(obj, attribute) for obj in objects if fits(obj, noun)}


def test_every_question_has_exactly_one_correct_answer(questions):
    for _, scene, question, _ in questions:
        assert answers_of(scene, question.text) == {question.answer}, question.text


def test_ten_people_answer_and_only_the_true_answer_scores_100_percent(questions):
    for _, _, question, answers in questions:
        assert len(answers) == 10
        assert vqa_accuracy(question.answer, answers) == 1
        assert all(vqa_accuracy(a, answers) < 1 or a == question.answer for a in set(answers))


def test_seven_to_ten_people_agree(questions):
    agreement = Counter(answers.count(question.answer) for _, _, question, answers in questions)
    assert set(agreement) == {7, 8, 9, 10}
    assert agreement[10] > agreement[7]


def test_yes_and_no_are_equally_frequent_for_each_question_type(questions):
    for kind in ('is there', 'is the'):
        counts = Counter(q.answer for _, _, q, _ in questions if q.question_type == kind)
        share = counts['yes'] / counts.total()
        # Three standard deviations of a fair coin.
        assert abs(share - 0.5) < 1.5 / counts.total() ** 0.5, kind


def test_all_question_types_and_answer_types_occur(questions):
    types = Counter(question.question_type for _, _, question, _ in questions)
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
    assert {question.answer_type for _, _, question, _ in questions} == {
        'yes/no',
        'number',
        'other',
    }
    assert all(question.text.startswith(question.question_type) for _, _, question, _ in questions)


def test_most_questions_beyond_existence_and_counts_need_a_relation(questions):
    for kind in ('is the', 'what is', 'how many things are'):
        texts = [q.text for _, _, q, _ in questions if q.question_type == kind]
        assert all(split_at_direction(text)[1] for text in texts)
    texts = [q.text for _, _, q, _ in questions if q.question_type == 'what colour is the']
    assert sum(bool(split_at_direction(text)[1]) for text in texts) > 0.5 * len(texts)


def test_training_has_no_question_about_a_held_out_composition_or_its_reverse(questions):
    kinds = {f'{colour} {shape}' for colour in COLOURS for shape in SHAPES}

    def kind(phrase):
        name = ' '.join(phrase.split()[-2:])
        assert name in kinds
        colour, shape = name.split()
        return type('Kind', (), {'colour': colour, 'shape': shape})

    num_held_out = 0
    for split, _, question, _ in questions:
        if question.question_type == 'is the':
            first, name, second = split_at_direction(question.text.removeprefix('is the '))
            pair = kind(first), kind(second)
            held_out = any(is_held_out(pair[0], way, pair[1]) for way in (name, OPPOSITE[name]))
            assert split == 'test' or not held_out, question.text
            num_held_out += held_out
    assert num_held_out > 10


def test_all_words_and_answers_are_known(questions):
    words = {*vocabulary(), *(word for words in TASK_WORDS for word in words)}
    assert len(words) <= 128
    known_answers = answer_list()
    assert len(set(known_answers)) == len(known_answers)
    for _, _, question, answers in questions:
        assert words.issuperset(question.text.split())
        assert set(answers) <= set(known_answers)
    assert all(words.issuperset(answer.split()) for answer in known_answers)
    assert all(normalize_answer(answer) == answer for answer in known_answers)


def test_the_same_scene_gives_the_same_questions():
    scene = sample_scene(0, 'train', 3)
    assert generate_questions('train', scene) == generate_questions('train', scene)


def test_files_have_the_format_of_vqa_v2(tiny_world):
    for split in SPLITS:
        question_file = json.loads((tiny_world / 'vqa' / f'questions_{split}.json').read_text())
        annotation_file = json.loads((tiny_world / 'vqa' / f'annotations_{split}.json').read_text())
        assert set(question_file) == {'info', 'task_type', 'data_type', 'data_subtype', 'questions'}
        assert question_file['data_subtype'] == annotation_file['data_subtype'] == split
        ids = [item['question_id'] for item in question_file['questions']]
        assert len(set(ids)) == len(ids)
        assert ids == [item['question_id'] for item in annotation_file['annotations']]
        for question, annotation in zip(
            question_file['questions'], annotation_file['annotations'], strict=True
        ):
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
