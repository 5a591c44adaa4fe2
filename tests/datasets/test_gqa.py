"""Reader of GQA's questions, with regions."""

import json
from pathlib import Path

import pytest
from detected import random_image, write_store

from xmodal.datasets import GqaDataset

FIXTURES = Path('data/vl_fixtures')


def question(**changes):
    return {
        'question': 'What is hanging above the chalkboard?',
        'imageId': 'n578564',
        'answer': 'picture',
        'isBalanced': True,
        'entailed': ['202218648', '1'],
        'groups': {'global': 'thing', 'local': '14-chalkboard'},
        'types': {'detailed': 'relS', 'semantic': 'rel', 'structural': 'query'},
        **changes,
    }


@pytest.fixture
def read(tmp_path):
    store = write_store(tmp_path / 'store', [random_image('n578564', 2)])

    def read(questions, **options):
        (tmp_path / 'testdev.json').write_text(json.dumps(questions))
        pipeline = [dict(type='LoadRegions', store=str(store))]
        return GqaDataset('testdev.json', data_root=str(tmp_path), pipeline=pipeline, **options)

    return read


def test_a_question_has_the_fields_that_the_evaluation_needs(read):
    sample = read({'202218648': question()})[0]
    assert sample['question_id'] == '202218648'
    assert (sample['answers'], sample['answer_weights']) == (['picture'], [1.0])
    assert sample['answer_type'] == 'open'
    assert len(sample['regions'].features) == 2
    assert sample['gqa'] == {
        'structural': 'query',
        'semantic': 'rel',
        'detailed': 'relS',
        'group': 'thing',
        'balanced': True,
        'entailed': ['1'],
        'objects': None,
    }


def test_the_target_is_the_answer_as_it_is_written(read):
    """Also with scores for weights: only VQA's evaluation rewrites answers."""
    sample = read({'1': question(answer='the T-shirt')}, weights='score')[0]
    assert (sample['answers'], sample['answer_weights']) == (['the T-shirt'], [1.0])


def test_images_of_a_test_of_vqa_are_left_out(read, tmp_path):
    (tmp_path / 'images.json').write_text(json.dumps([{'image_id': 7, 'coco_id': 70}]))
    (tmp_path / 'vqa.json').write_text(json.dumps({'questions': [{'image_id': 70}]}))
    questions = {'1': question(), '2': question(imageId='7')}
    dataset = read(questions, image_data='images.json', exclude='vqa.json')
    assert [sample['question_id'] for sample in dataset] == ['1']


def test_a_question_has_the_objects_that_it_and_its_full_answer_name(read):
    annotations = {
        'answer': {'0': '7'},
        'question': {'3': '5', '5:7': '6'},
        'fullAnswer': {'1': '7', '4:6': '6'},
    }
    questions = {'1': question(annotations=annotations)}
    assert read(questions)[0]['gqa']['objects'] == ['5', '6', '7', '6']


def test_all_types_but_query_are_binary(read):
    types = {'structural': 'choose', 'semantic': 'attr', 'detailed': None}
    sample = read({'1': question(types=types, groups={'global': None})})[0]
    assert sample['answer_type'] == 'binary' and sample['gqa']['group'] is None


def test_a_test_set_is_read_without_answers_and_types(read):
    questions = {'1': {'question': 'Is it?', 'imageId': 'n578564', 'isBalanced': True}}
    sample = read(questions, test_mode=True)[0]
    assert sample['answers'] == [] and sample['gqa']['structural'] is None
    with pytest.raises(ValueError, match='question 1 has no answer, and training needs one'):
        read(questions)


def test_a_missing_key_is_named(read):
    with pytest.raises(ValueError, match="after 1 records: key 'imageId' is missing"):
        read({'1': question(), '2': {'question': 'Is it?', 'answer': 'no'}})


@pytest.mark.skipif(not FIXTURES.exists(), reason='needs data/vl_fixtures')
def test_official_items_are_read():
    dataset = GqaDataset(
        ['gqa/question_dir/questions0.json', 'gqa/question_dir/questions1.json'],
        data_root=str(FIXTURES),
        data_prefix=dict(image='images/gqa'),
    )
    assert len(dataset) == 2
    assert all(Path(sample['img_path']).exists() for sample in dataset)
    assert dataset[0]['answers'] == ['picture']
    assert {sample['answer_type'] for sample in dataset} <= {'open', 'binary'}
