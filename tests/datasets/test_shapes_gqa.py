"""The embedded world's questions as GQA, and LXMERT's pre-training data."""

import json
from collections import Counter

import pytest

from xmodal.datasets import GqaDataset, LxmertPretrainDataset, VqaDataset
from xmodal.datasets.shapes.exporters import TASK_WORDS
from xmodal.datasets.shapes.gqa import write_gqa_items
from xmodal.datasets.shapes.grammar import vocabulary
from xmodal.datasets.shapes.questions import answer_list
from xmodal.datasets.shapes.scene import sample_scene

SYNONYMS = {'little': 'small', 'big': 'large', 'plain': 'solid', 'spotted': 'dotted'}


@pytest.fixture(scope='module')
def asked():
    """Scene and question, those of the balanced set and what they entail."""
    return [
        (scene, item)
        for index in range(300)
        for scene in [sample_scene(0, 'train', index)]
        for question in write_gqa_items('train', scene)
        for item in (question, *question.entails)
    ]


def fits(phrase, thing):
    """Whether all that a noun phrase says is true of a thing."""
    words = {SYNONYMS.get(word, word) for word in phrase.split()} - {'a', 'an', 'the', 'thing'}
    return words <= {thing.shape, thing.colour, thing.size, thing.texture}


def test_logical_questions_are_answered_by_the_scene(asked):
    logical = [(scene, item) for scene, item in asked if item.structural == 'logical']
    for scene, item in logical:
        said = item.text.removeprefix('is there ')
        word = 'and' if ' and ' in said else 'or'
        there = [any(fits(p, t) for t in scene.things) for p in said.split(f' {word} ')]
        truth = all(there) if word == 'and' else any(there)
        assert item.answer == ('yes' if truth else 'no')
    assert len(logical) > 100


def test_comparisons_are_answered_by_the_scene(asked):
    compared = [(scene, item) for scene, item in asked if item.structural == 'compare']
    for scene, item in compared:
        phrases, _, attribute = item.text.removeprefix('are the ').partition(' the same ')
        pair = [
            thing
            for phrase in phrases.split(' and the ')
            for thing in scene.things
            if fits(phrase, thing)
        ]
        assert len(pair) == 2
        same = len({getattr(thing, attribute) for thing in pair}) == 1
        assert item.answer == ('yes' if same else 'no')
    assert len(compared) > 30


def test_choices_are_between_the_answer_and_an_attribute_of_another_thing(asked):
    for scene, item in asked:
        if item.structural == 'choose':
            assert item.answer in item.valid and len(set(item.valid)) == 2
            assert all(option in item.text for option in item.valid)
            assert set(item.valid) <= {v for t in scene.things for v in (t.colour, t.shape)}


def test_what_follows_from_a_query_agrees_with_its_answer(asked):
    for _, item in asked:
        if item.structural == 'query' and item.semantic == 'attr':
            true, false = item.entails
            assert (true.answer, false.answer) == ('yes', 'no')
            assert true.text.endswith(f' {item.answer}') and not false.text.endswith(item.answer)
        elif item.structural == 'query':
            (entailed,) = item.entails
            assert entailed.answer == 'yes' and entailed.text.endswith(f' {item.answer}')
        else:
            assert not item.entails


def test_yes_and_no_are_even_for_each_type(asked):
    counts = Counter(
        (item.structural, item.answer) for _, item in asked if item.answer in ('yes', 'no')
    )
    for structural in ('verify', 'logical', 'compare'):
        yes, no = counts[structural, 'yes'], counts[structural, 'no']
        # Three standard deviations of a fair coin; what is entailed says yes more often.
        margin = 0.1 if structural == 'verify' else 1.5 / (yes + no) ** 0.5
        assert abs(yes / (yes + no) - 0.5) < margin, structural


def test_words_and_answers_are_known(asked):
    words = {*vocabulary(), *(word for own in TASK_WORDS for word in own)}
    listed = set(answer_list())
    for _, item in asked:
        assert words.issuperset(item.text.split())
        assert item.answer in item.valid and listed.issuperset(item.valid)
    assert {item.structural for _, item in asked} == {
        'query',
        'verify',
        'logical',
        'choose',
        'compare',
    }


def test_the_same_scene_gives_the_same_questions():
    scene = sample_scene(0, 'train', 3)
    assert write_gqa_items('train', scene) == write_gqa_items('train', scene)


def test_files_are_those_of_gqa(tiny_world):
    folder = tiny_world / 'gqa'
    everything = json.loads((folder / 'testdev_all_questions.json').read_text())
    balanced = json.loads((folder / 'testdev_balanced_questions.json').read_text())
    assert balanced == {name: item for name, item in everything.items() if item['isBalanced']}
    assert set(everything) == set(json.loads((folder / 'testdev_choices.json').read_text()))
    for item in everything.values():
        assert set(item) == {
            'question',
            'imageId',
            'answer',
            'fullAnswer',
            'isBalanced',
            'types',
            'groups',
            'entailed',
            'equivalent',
        }
        assert set(item['entailed']) <= set(everything)
    dataset = GqaDataset(
        'testdev_all_questions.json',
        data_root=str(folder),
        pipeline=[dict(type='LoadRegions', store=str(tiny_world / 'regions/store'))],
        test_mode=True,
    )
    assert len(dataset) == len(everything)
    assert dataset[0]['img_path'].endswith('test_000000.jpg')


def test_pre_training_asks_what_the_tasks_ask(tiny_world):
    pipeline = [dict(type='LoadRegions', store=str(tiny_world / 'regions/store'))]
    root = str(tiny_world)
    sentences = list(LxmertPretrainDataset('lxmert/train.json', root, pipeline=pipeline))
    by_source = {
        name: [s for s in sentences if s['source'] == name] for name in ('mscoco', 'vqa', 'gqa')
    }
    assert len(by_source['mscoco']) == 5 * 32
    vqa = VqaDataset(
        'vqa/questions_train.json',
        answer_file='vqa/annotations_train.json',
        image_info='coco/captions_train.json',
        data_root=root,
        weights='score',
        max_words=None,
    )
    gqa = GqaDataset(
        'gqa/train_balanced_questions.json', data_root=root, pipeline=pipeline, max_words=None
    )
    for own, other in ((by_source['vqa'], vqa), (by_source['gqa'], gqa)):
        for sentence, question in zip(own, other, strict=True):
            assert sentence['text'] == question['text']
            answers = [
                answer.replace('grey', 'gray') if answer == 'grey' else answer
                for answer in question['answers']
            ]
            assert sentence['answers'] == answers
            assert sentence['answer_weights'] == pytest.approx(question['answer_weights'])
    table = set(json.loads((tiny_world / 'lxmert/answer_list.json').read_text()))
    assert all(table.issuperset(sentence['answers']) for sentence in sentences)
    assert len(table) == 161


def test_every_stem_of_an_image_is_one_image(tiny_world):
    stems = [file.stem for file in (tiny_world / 'images').rglob('*.png')]
    assert len(stems) == len(set(stems)) == 32 + 6 + 10
