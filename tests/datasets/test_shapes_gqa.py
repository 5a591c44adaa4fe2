"""The embedded world's questions as GQA, and LXMERT's pre-training data."""

import json
from collections import Counter

import pytest

from xmodal.datasets import GqaDataset, LxmertPretrainDataset, VqaDataset
from xmodal.datasets.shapes.exporters import TASK_WORDS
from xmodal.datasets.shapes.gqa import generate_gqa_items
from xmodal.datasets.shapes.grammar import vocabulary
from xmodal.datasets.shapes.questions import answer_list
from xmodal.datasets.shapes.scene import sample_scene

SYNONYMS = {'little': 'small', 'big': 'large', 'plain': 'solid', 'spotted': 'dotted'}


@pytest.fixture(scope='module')
def questions():
    """Scenes with their balanced questions and the questions that these entail."""
    return [
        (scene, item)
        for index in range(300)
        for scene in [sample_scene(0, 'train', index)]
        for question in generate_gqa_items('train', scene)
        for item in (question, *question.entails)
    ]


def fits(phrase, obj):
    """Whether every word of a noun phrase is true of an object."""
    words = {SYNONYMS.get(word, word) for word in phrase.split()} - {'a', 'an', 'the', 'thing'}
    return words <= {obj.shape, obj.colour, obj.size, obj.texture}


def test_logical_questions_are_answered_by_the_scene(questions):
    logical = [(scene, item) for scene, item in questions if item.structural == 'logical']
    for scene, item in logical:
        phrases = item.text.removeprefix('is there ')
        word = 'and' if ' and ' in phrases else 'or'
        present = [any(fits(p, o) for o in scene.objects) for p in phrases.split(f' {word} ')]
        is_true = all(present) if word == 'and' else any(present)
        assert item.answer == ('yes' if is_true else 'no')
    assert len(logical) > 100


def test_comparisons_are_answered_by_the_scene(questions):
    comparisons = [(scene, item) for scene, item in questions if item.structural == 'compare']
    for scene, item in comparisons:
        phrases, _, attribute = item.text.removeprefix('are the ').partition(' the same ')
        pair = [
            obj
            for phrase in phrases.split(' and the ')
            for obj in scene.objects
            if fits(phrase, obj)
        ]
        assert len(pair) == 2
        is_equal = len({getattr(obj, attribute) for obj in pair}) == 1
        assert item.answer == ('yes' if is_equal else 'no')
    assert len(comparisons) > 30


def test_choices_are_between_the_answer_and_an_attribute_of_another_object(questions):
    for scene, item in questions:
        if item.structural == 'choose':
            assert item.answer in item.valid and len(set(item.valid)) == 2
            assert all(option in item.text for option in item.valid)
            assert set(item.valid) <= {v for o in scene.objects for v in (o.colour, o.shape)}


def test_entailed_questions_agree_with_the_answer_of_their_query(questions):
    for _, item in questions:
        if item.structural == 'query' and item.semantic == 'attr':
            yes, no = item.entails
            assert (yes.answer, no.answer) == ('yes', 'no')
            assert yes.text.endswith(f' {item.answer}') and not no.text.endswith(item.answer)
        elif item.structural == 'query':
            (entailed,) = item.entails
            assert entailed.answer == 'yes' and entailed.text.endswith(f' {item.answer}')
        else:
            assert not item.entails


def test_yes_and_no_are_equally_frequent_for_each_type(questions):
    counts = Counter(
        (item.structural, item.answer) for _, item in questions if item.answer in ('yes', 'no')
    )
    for structural in ('verify', 'logical', 'compare'):
        yes, no = counts[structural, 'yes'], counts[structural, 'no']
        # Three standard deviations of a fair coin; entailed questions have more yes.
        margin = 0.1 if structural == 'verify' else 1.5 / (yes + no) ** 0.5
        assert abs(yes / (yes + no) - 0.5) < margin, structural


def test_all_words_and_answers_are_known(questions):
    words = {*vocabulary(), *(word for words in TASK_WORDS for word in words)}
    known_answers = set(answer_list())
    for _, item in questions:
        assert words.issuperset(item.text.split())
        assert item.answer in item.valid and known_answers.issuperset(item.valid)
    assert {item.structural for _, item in questions} == {
        'query',
        'verify',
        'logical',
        'choose',
        'compare',
    }


def test_the_same_scene_gives_the_same_questions():
    scene = sample_scene(0, 'train', 3)
    assert generate_gqa_items('train', scene) == generate_gqa_items('train', scene)


def test_files_have_the_format_of_gqa(tiny_world):
    folder = tiny_world / 'gqa'
    all_questions = json.loads((folder / 'testdev_all_questions.json').read_text())
    balanced = json.loads((folder / 'testdev_balanced_questions.json').read_text())
    assert balanced == {key: item for key, item in all_questions.items() if item['isBalanced']}
    assert set(all_questions) == set(json.loads((folder / 'testdev_choices.json').read_text()))
    for item in all_questions.values():
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
        assert set(item['entailed']) <= set(all_questions)
    dataset = GqaDataset(
        'testdev_all_questions.json',
        data_root=str(folder),
        pipeline=[dict(type='LoadRegions', store=str(tiny_world / 'regions/store'))],
        test_mode=True,
    )
    assert len(dataset) == len(all_questions)
    assert dataset[0]['img_path'].endswith('test_000000.jpg')


def test_pre_training_has_the_questions_of_the_tasks(tiny_world):
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
    for sentences_of_task, questions in ((by_source['vqa'], vqa), (by_source['gqa'], gqa)):
        for sentence, question in zip(sentences_of_task, questions, strict=True):
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


def test_the_stems_of_all_images_are_different(tiny_world):
    stems = [file.stem for file in (tiny_world / 'images').rglob('*.png')]
    assert len(stems) == len(set(stems)) == 32 + 6 + 10
