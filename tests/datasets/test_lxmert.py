"""Readers of LXMERT's published files."""

import json

import pytest
from detected import random_image, write_store

from xmodal.datasets import (
    LxmertPretrainDataset,
    LxmertQuestionDataset,
    LxmertReasoningDataset,
    stack_regions,
)


@pytest.fixture
def pipeline(tmp_path):
    """A pipeline that loads the regions of images a, b and c."""
    store = write_store(
        tmp_path / 'store', [random_image(name, 2, n) for n, name in enumerate('abc')]
    )
    fields = ('answers', 'answer_weights')
    return [dict(type='LoadRegions', store=str(store)), dict(type='PackRegionText', fields=fields)]


def dump(folder, content):
    (folder / 'train.json').write_text(json.dumps(content))
    return dict(ann_file='train.json', data_root=str(folder))


IMAGES = [
    {
        'img_id': 'a',
        'sentf': {'mscoco': ['A dog.', 'Two dogs!'], 'vqa': ['Is it?', 'What colour?']},
        'labelf': {'vqa': [{'yes': 1.0, 'No.': 0.3}, {'grey': 0.6, 'gray': 0.9, 'a man': 0.3}]},
    },
    {'img_id': 'b', 'sentf': {'gqa': ['Who?']}, 'labelf': {'gqa': [{}]}},
]


def test_a_pre_training_sample_is_an_image_with_one_sentence(tmp_path, pipeline):
    dataset = LxmertPretrainDataset(**dump(tmp_path, IMAGES), pipeline=pipeline)
    samples = [sample['data_samples'] for sample in dataset]
    assert [s.text for s in samples] == ['A dog.', 'Two dogs!', 'Is it?', 'What colour?', 'Who?']
    assert [s.image_id for s in samples] == [0, 0, 0, 0, 1]
    assert [len(sample['inputs'].features) for sample in dataset] == [2] * 5


def test_captions_and_questions_with_an_empty_label_have_no_answers(tmp_path, pipeline):
    dataset = LxmertPretrainDataset(**dump(tmp_path, IMAGES), pipeline=pipeline)
    answers = [sample['data_samples'].answers for sample in dataset]
    assert answers == [[], [], ['yes', 'no'], ['gray', 'man'], []]
    weights = [sample['data_samples'].answer_weights for sample in dataset]
    assert weights[2:4] == [
        [1.0, 0.3],
        [0.9, 0.3],
    ]  # "grey" becomes "gray", and the larger score counts


def test_sentences_are_cleaned_with_max_words(tmp_path, pipeline):
    dataset = LxmertPretrainDataset(**dump(tmp_path, IMAGES), pipeline=pipeline, max_words=50)
    assert dataset[2]['data_samples'].text == 'is it'


def test_an_image_without_regions_is_replaced_and_named(tmp_path, pipeline):
    images = [*IMAGES, {'img_id': 'gone', 'sentf': {'mscoco': ['A cat.']}}]
    options = dump(tmp_path, images)
    sample = LxmertPretrainDataset(**options, pipeline=pipeline)[5]['data_samples']
    assert sample.text != 'A cat.'
    assert sample.skipped[0].startswith('gone: no regions of this image')
    with pytest.raises(
        FileNotFoundError, match='1 of 3 checked images .* no regions .*for instance gone'
    ):
        LxmertPretrainDataset(**options, pipeline=pipeline, test_mode=True)


def test_a_store_of_other_images_is_an_error_when_the_dataset_is_built(tmp_path, pipeline):
    images = [{'img_id': 'COCO_7', 'sentf': {'mscoco': ['A cat.']}}]
    with pytest.raises(
        FileNotFoundError, match='1 of 1 checked images have no regions .*COCO_7 .*train.json'
    ):
        LxmertPretrainDataset(**dump(tmp_path, images), pipeline=pipeline)


@pytest.mark.parametrize(
    ('image', 'message'),
    [
        ({'img_id': 'b', 'sentf': {'vqa': ['x', 'y']}, 'labelf': {'vqa': [{}]}}, '2 sentences of'),
        ({'sentf': {'vqa': ['x']}}, "key 'img_id' is missing"),
        ({'img_id': 5, 'sentf': {'vqa': ['x']}}, 'img_id is 5'),
        ({'img_id': 'b', 'sentf': {'vqa': [None]}}, r'sentf\.vqa is \[None\]'),
        *(
            (
                {'img_id': 'b', 'sentf': {'vqa': ['x']}, 'labelf': {'vqa': [{'yes': score}]}},
                rf'labelf\.vqa\[0\]\.yes is {score}, expected a number from 0 to 1',
            )
            for score in (float('nan'), -0.3, 1.5)
        ),
    ],
)
def test_a_file_with_another_layout_is_named_with_the_progress(tmp_path, image, message):
    with pytest.raises(
        ValueError, match=f'train.json cannot be read .* after 2 images: .*{message}'
    ):
        LxmertPretrainDataset(**dump(tmp_path, [*IMAGES, image]))


QUESTIONS = [
    {
        'question_id': 7,
        'img_id': 'a',
        'sent': 'How many?',
        'label': {'2': 1, '3': 0.3},
        'answer_type': 'number',
        'question_type': 'how many',
    },
    {'question_id': 8, 'img_id': 'b', 'sent': 'Who?', 'label': {}},
]


def test_questions_have_the_scores_in_the_file(tmp_path, pipeline):
    options = dict(**dump(tmp_path, QUESTIONS), pipeline=pipeline[:1], max_words=None)
    first, second = LxmertQuestionDataset(**options)
    assert (first['text'], first['question_id']) == ('How many?', 7)
    assert (first['answer_type'], first['question_type']) == ('number', 'how many')
    assert (second['answer_type'], second['question_type']) == ('', '')
    assert (first['answers'], first['answer_weights']) == (['2', '3'], [1, 0.3])
    assert all(isinstance(weight, float) for weight in first['answer_weights'])  # also of 1
    assert second['answers'] == [] and second['human_answers'] == []


def test_a_test_file_needs_no_labels_and_a_training_file_does(tmp_path, pipeline):
    questions = [{k: v for k, v in item.items() if k != 'label'} for item in QUESTIONS]
    options = dict(**dump(tmp_path, questions), pipeline=pipeline[:1])
    assert len(LxmertQuestionDataset(**options, test_mode=True)) == 2
    with pytest.raises(ValueError, match='question 7 has no answer, and training needs one'):
        LxmertQuestionDataset(**options)


def test_a_statement_has_its_two_images_in_order(tmp_path, pipeline):
    item = {
        'identifier': 'train-10171-0-1',
        'img0': 'c',
        'img1': 'a',
        'label': 0,
        'sent': 'X is.',
        'uid': 'nlvr2_train_0',
    }
    pipeline = [pipeline[0], dict(type='PackRegionText', fields=('label', 'identifier', 'group'))]
    dataset = LxmertReasoningDataset(**dump(tmp_path, [item]), pipeline=pipeline, max_words=None)
    batch = stack_regions([dataset[0]])
    for row, name in enumerate('ca'):
        expected = random_image(name, 2, 'abc'.index(name)).features
        assert (batch['inputs'].features[row].numpy() == expected).all()
    sample = batch['data_samples'][0]
    assert (sample.label, sample.group, sample.text) == (0, 'train-10171-1', 'X is.')
    with pytest.raises(ValueError, match='label is 3, expected 0 or 1'):
        LxmertReasoningDataset(**dump(tmp_path, [{**item, 'label': 3}]))
