"""Readers of visual question answering."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from xmodal.datasets import AlbefVqaDataset, VisualGenomeQuestionDataset, VqaDataset
from xmodal.datasets.transforms import RandomFlip

FIXTURES = Path('data/vl_fixtures')
needs_fixtures = pytest.mark.skipif(
    not FIXTURES.exists(), reason='needs data/vl_fixtures: items in the official formats'
)


def dump(folder, name, content):
    (folder / name).write_text(json.dumps(content))
    return name


def questions(*ids, subtype='val2014', image_id=9):
    return {
        'data_subtype': subtype,
        'questions': [
            {'image_id': image_id, 'question': f'Is it {i}?', 'question_id': i} for i in ids
        ],
    }


def annotations(**answers):
    """Annotations by question id: ``q1=['yes', …]``."""
    return {
        'annotations': [
            {
                'question_id': int(key[1:]),
                'answer_type': 'yes/no',
                'answers': [{'answer': a, 'answer_id': i} for i, a in enumerate(texts, start=1)],
            }
            for key, texts in answers.items()
        ]
    }


@pytest.fixture
def folder(tmp_path):
    """A folder with COCO's image 9 and Visual Genome's images 4 and 5."""
    image = np.zeros((4, 4, 3), np.uint8)
    for name in (
        'val2014/COCO_val2014_000000000009.jpg',
        'test2015/COCO_test2015_000000000009.jpg',
        'VG_100K/4.jpg',
        'VG_100K_2/5.jpg',
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        cv2.imwrite(str(tmp_path / name), image)
    return tmp_path


@pytest.fixture
def vqa(folder):
    """Reads questions and annotations, written to files."""

    def make(question_content, annotation_content=None, **options):
        dump(folder, 'questions.json', question_content)
        if annotation_content is not None:
            options['answer_file'] = dump(folder, 'annotations.json', annotation_content)
        return VqaDataset('questions.json', data_root=str(folder), **options)

    return make


def test_answers_are_weighted_by_the_share_of_people(vqa, folder):
    dataset = vqa(questions(1), annotations(q1=['yes'] * 7 + ['no'] * 2 + ['maybe']))
    sample = dataset[0]
    assert sample['img_path'] == str(folder / 'val2014/COCO_val2014_000000000009.jpg')
    assert sample['text'] == 'is it 1'
    assert sample['question_id'] == 1
    assert sample['image_id'] == 9
    assert sample['answers'] == ['yes', 'no', 'maybe']
    assert sample['answer_weights'] == pytest.approx([0.7, 0.2, 0.1])
    assert len(sample['human_answers']) == 10
    assert sample['answer_type'] == 'yes/no'


@pytest.mark.parametrize('subtype', ['test2015', 'test-dev2015'])
def test_a_test_set_is_read_without_annotations(vqa, subtype):
    dataset = vqa(questions(3, 1, subtype=subtype), test_mode=True)
    assert [sample['question_id'] for sample in dataset] == [3, 1]
    assert dataset[0]['human_answers'] == []
    assert dataset[0]['img_path'].endswith('test2015/COCO_test2015_000000000009.jpg')


def test_each_file_of_questions_has_a_file_of_annotations(folder):
    for question_id in (1, 2):
        dump(folder, f'q{question_id}.json', questions(question_id))
        dump(folder, f'a{question_id}.json', annotations(**{f'q{question_id}': ['yes']}))
    dataset = VqaDataset(
        ['q1.json', 'q2.json'], answer_file=['a1.json', 'a2.json'], data_root=str(folder)
    )
    assert [sample['question_id'] for sample in dataset] == [1, 2]
    with pytest.raises(ValueError, match='names 1 files and dataset.ann_file 2'):
        VqaDataset(['q1.json', 'q2.json'], answer_file='a1.json', data_root=str(folder))


def test_image_names_are_read_from_image_info(vqa, folder):
    info = {'images': [{'id': 9, 'file_name': 'VG_100K/4.jpg'}]}
    dump(folder, 'info.json', info)
    dataset = vqa(questions(1), annotations(q1=['yes']), image_info='info.json')
    assert dataset[0]['img_path'] == str(folder / 'VG_100K/4.jpg')
    assert {9: 'VG_100K/4.jpg'} not in vars(dataset).values()  # not kept after reading
    with pytest.raises(ValueError, match=r'info\.json .* does not name the image 8'):
        vqa(questions(1, image_id=8), annotations(q1=['yes']), image_info='info.json')


@pytest.mark.parametrize(
    ('question_content', 'annotation_content', 'message'),
    [
        (questions(1, 2), annotations(q1=['yes']), 'has no annotation of question 2'),
        (
            questions(1),
            annotations(q1=['yes'], q5=['no']),
            '1 questions that the file of questions does not.* 5',
        ),
        (questions(1, 1), annotations(q1=['yes']), 'question_id 1 occurs twice'),
        (questions(1), None, 'question 1 has no answer, and training needs one'),
        ({'questions': [{'question_id': 1}]}, annotations(q1=['x']), "key 'image_id' is missing"),
    ],
)
def test_a_mismatch_of_questions_and_annotations_is_an_error_that_names_the_file(
    vqa, question_content, annotation_content, message
):
    with pytest.raises(ValueError, match=f'questions.json cannot be read.*{message}'):
        vqa(question_content, annotation_content)


LFS_POINTER = 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 7\n'


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('', 'is not valid JSON: Expecting value'),
        (LFS_POINTER, 'is not valid JSON: it is a Git LFS pointer'),
        ('5', 'cannot be read: '),
        ('{"images": [{"id": 1}]}', 'cannot be read: '),
    ],
)
def test_a_second_file_that_cannot_be_read_is_named_and_not_the_questions(
    vqa, folder, content, message
):
    (folder / 'bad.json').write_text(content)
    dump(folder, 'qa.json', [])
    files = questions(1), annotations(q1=['yes'])
    calls = (
        lambda: vqa(*files, answer_list='bad.json'),
        lambda: vqa(*files, image_info='bad.json'),
        lambda: vqa(questions(1), answer_file='bad.json'),
        lambda: VisualGenomeQuestionDataset('qa.json', image_data='bad.json', data_root=folder),
    )
    for call in calls:
        with pytest.raises(ValueError, match=rf'^[^:]*bad\.json {message}'):
            call()


def test_invalid_annotations_are_named_by_their_file(vqa):
    with pytest.raises(ValueError, match=r'^\S*annotations\.json cannot.* 1 has no answers'):
        vqa(questions(1), annotations(q1=[]))


def test_visual_genome_answers_are_normalised_as_in_vqa(folder):
    def item(image_id, qa_id, answer):
        return {'image_id': image_id, 'qa_id': qa_id, 'question': 'What?', 'answer': answer}

    qas = [item(4, 1, 'A teddy bear.'), item(4, 2, 'Two.'), item(4, 3, 'The.')]
    dump(folder, 'qa.json', [{'id': 4, 'qas': qas}, {'id': 5, 'qas': [item(5, 4, 'Glass.')]}])
    urls = {4: 'http://x/VG_100K/4.jpg', 5: 'http://x/VG_100K_2/5.jpg'}
    dump(folder, 'images.json', [{'image_id': n, 'url': url} for n, url in urls.items()])
    dataset = VisualGenomeQuestionDataset(
        'qa.json', image_data='images.json', data_root=str(folder)
    )
    assert [sample['answers'] for sample in dataset] == [['teddy bear'], ['2'], ['glass']]
    assert [sample['answer_weights'] for sample in dataset] == [[0.5]] * 3
    assert [Path(sample['img_path']).parent.name for sample in dataset] == [
        'VG_100K',
        'VG_100K',
        'VG_100K_2',
    ]


@pytest.mark.parametrize(
    'questions',
    [{'questions': [{'image_id': 70}]}, [{'img_id': 'COCO_val2014_000000000070'}]],
    ids=['VQA', 'LXMERT'],
)
def test_images_of_a_test_are_left_out_of_visual_genome(folder, questions):
    qas = [{'image_id': n, 'qa_id': n, 'question': 'What?', 'answer': f'A {n}.'} for n in (4, 5, 6)]
    dump(folder, 'qa.json', [{'id': item['image_id'], 'qas': [item]} for item in qas])
    images = [
        {'image_id': n, 'url': f'http://x/VG_100K/{n}.jpg', 'coco_id': coco}
        for n, coco in ((4, 60), (5, 70), (6, None))
    ]
    dump(folder, 'images.json', images)
    dump(folder, 'test.json', questions)
    options = dict(exclude='test.json', data_root=str(folder))
    dataset = VisualGenomeQuestionDataset('qa.json', image_data='images.json', **options)
    assert [sample['question_id'] for sample in dataset] == [4, 6]
    with pytest.raises(ValueError, match='dataset.exclude needs dataset.image_data'):
        VisualGenomeQuestionDataset('qa.json', **options)


def test_albefs_lists_have_ten_answers_one_answer_or_none(folder):
    image = 'val2014/COCO_val2014_000000000009.jpg'
    training_items = [
        {'image': image, 'question': 'A?', 'answer': ['yes'] * 9 + ['no'], 'dataset': 'vqa'},
        {'image': '4.jpg', 'question': 'B?', 'answer': 'glass', 'dataset': 'vg'},
    ]
    dump(folder, 'train.json', training_items)
    prefix = dict(vg='VG_100K')
    dataset = AlbefVqaDataset('train.json', data_root=str(folder), data_prefix=prefix)
    assert dataset[0]['answers'] == ['yes', 'no']
    assert dataset[0]['answer_weights'] == pytest.approx([0.9, 0.1])
    assert dataset[1]['answer_weights'] == [0.5]
    assert dataset[1]['img_path'] == str(folder / 'VG_100K/4.jpg')

    test_item = {'image': image, 'question': 'C?', 'question_id': 77, 'dataset': 'vqa'}
    dump(folder, 'test.json', [test_item])
    dataset = AlbefVqaDataset('test.json', data_root=str(folder), test_mode=True)
    assert (dataset[0]['question_id'], dataset[0]['human_answers']) == (77, [])
    with pytest.raises(ValueError, match='has no answer, and training needs one'):
        AlbefVqaDataset('test.json', data_root=str(folder))
    dump(folder, 'other.json', [{**test_item, 'dataset': 'gqa'}])
    with pytest.raises(ValueError, match="dataset is 'gqa', expected 'vqa' or 'vg'"):
        AlbefVqaDataset('other.json', data_root=str(folder), test_mode=True)


def test_albefs_lists_of_one_name_are_read_together(folder):
    names = ['vqa/train.json', 'vg/train.json']
    for name in names:
        (folder / name).parent.mkdir()
        items = [{'image': '4.jpg', 'question': 'A?', 'answer': 'yes', 'dataset': 'vg'}] * 2
        dump(folder, name, items)
    prefix = dict(vg='VG_100K')
    dataset = AlbefVqaDataset(names, data_root=str(folder), data_prefix=prefix)
    assert len({dataset[index]['question_id'] for index in range(4)}) == 4


@pytest.mark.parametrize(
    ('answers', 'flipped'), [(['left'], False), (['LEFT'], False), (['red'], True), ([], True)]
)
def test_an_image_is_not_flipped_when_an_answer_mentions_a_side(answers, flipped):
    image = torch.arange(3).expand(3, 1, 3)
    results = {'img': image, 'text': 'where does it look', 'answers': answers}
    result = RandomFlip(probability=1.0).transform(results)['img']
    assert torch.equal(result, image.flip(-1)) == flipped


@needs_fixtures
def test_official_items_of_vqa_v2_are_read():
    dataset = VqaDataset(
        'vqav2/questions.json',
        answer_file='vqav2/annotations.json',
        data_root=str(FIXTURES),
        data_prefix=dict(image='images/vqav2'),
        image_name='COCO_{subtype}_{image_id:012d}.jpg',
    )
    assert len(dataset) == 3
    assert all(Path(sample['img_path']).exists() for sample in dataset)
    assert dataset[0]['answers'][0] == 'net'
    assert sum(dataset[0]['answer_weights']) == pytest.approx(1)


@needs_fixtures
def test_official_items_of_visual_genome_are_read():
    dataset = VisualGenomeQuestionDataset(
        'vgqa/question_answers.json',
        data_root=str(FIXTURES),
        data_prefix=dict(image='images/vgqa'),
    )
    answers = {sample['text']: sample['answers'] for sample in dataset}
    assert answers['what is on the couch'] == ['teddy bear']
    assert answers['what color is the couch'] == ['purple']


def test_the_embedded_world_can_be_read_as_vqa_v2(tiny_world):
    dataset = VqaDataset(
        'vqa/questions_test.json',
        answer_file='vqa/annotations_test.json',
        image_info='coco/captions_test.json',
        data_root=str(tiny_world),
        test_mode=True,
    )
    assert all(len(sample['human_answers']) == 10 for sample in dataset)
    assert all(Path(sample['img_path']).exists() for sample in dataset)


def test_score_weights_are_the_training_targets_of_lxmert(vqa):
    people = ['Yes', 'yes', 'yes.', 'two', '2', 'no', 'red', 'red', 'red', 'red']
    sample = vqa(questions(1), annotations(q1=people), weights='score')[0]
    scores = dict(zip(sample['answers'], sample['answer_weights'], strict=True))
    assert scores == pytest.approx({'yes': 0.9, '2': 0.6, 'no': 0.3, 'red': 1.0})
    assert sample['human_answers'] == people
    with pytest.raises(ValueError, match="dataset.weights='scores', expected 'share' or 'score'"):
        vqa(questions(1), annotations(q1=people), weights='scores')


def test_training_drops_questions_without_a_known_answer(vqa, folder):
    options = dict(answer_list=dump(folder, 'known.json', ['yes', 'red']))
    annotation_content = annotations(q1=['yes'] * 9 + ['no'], q2=['blue'] * 10, q3=['red'] * 10)
    dataset = vqa(questions(1, 2, 3), annotation_content, **options)
    assert [sample['question_id'] for sample in dataset] == [1, 3]
    assert dataset[0]['answers'] == ['yes']
    assert dataset[0]['answer_weights'] == pytest.approx([0.9])
    assert len(vqa(questions(1, 2, 3), annotation_content, **options, test_mode=True)) == 3


def test_questions_are_unchanged_without_max_words(vqa):
    assert vqa(questions(1), annotations(q1=['yes']), max_words=None)[0]['text'] == 'Is it 1?'
