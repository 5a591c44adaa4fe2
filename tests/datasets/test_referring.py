"""Readers of referring expressions, in REFER's and in ALBEF's format."""

import json
import os
import pickle

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from pycocotools.coco import COCO

from xmodal.datasets.refer_files import Instances, read_plain_pickle
from xmodal.datasets.referring import AlbefReferringDataset, ReferDataset
from xmodal.datasets.transforms import build_pipeline

FIELDS = ('ref_id', 'sent_id', 'split', 'size', 'box', 'proposals')
TRAIN = [dict(type='LoadImage'), dict(type='PackImageText')]
TEST = [dict(type='LoadImage'), dict(type='PackImageText', fields=FIELDS)]


def sentences(*texts, first):
    return [
        {'sent_id': sent_id, 'sent': text, 'raw': text.upper(), 'tokens': text.split()}
        for sent_id, text in enumerate(texts, start=first)
    ]


# Two images. As in REFER, no file has the file name of an entry.
REFERENCES = [
    dict(
        ref_id=5,
        ann_id=50,
        image_id=581857,
        category_id=1,
        split='train',
        sent_ids=[0, 1],
        file_name='COCO_train2014_000000581857_50.jpg',
        sentences=sentences('navy blue shirt', 'woman, back', first=0),
    ),
    dict(
        ref_id=6,
        ann_id=51,
        image_id=581857,
        category_id=1,
        split='val',
        sent_ids=[2],
        file_name='COCO_train2014_000000581857_51.jpg',
        sentences=sentences('the half-eaten one', first=2),
    ),
    dict(
        ref_id=9,
        ann_id=60,
        image_id=42,
        category_id=3,
        split='testA',
        sent_ids=[3],
        file_name='COCO_train2014_000000000042_60.jpg',
        sentences=sentences('cat', first=3),
    ),
    dict(
        ref_id=10,
        ann_id=61,
        image_id=42,
        category_id=3,
        split='testB',
        sent_ids=[4],
        file_name='COCO_train2014_000000000042_61.jpg',
        sentences=sentences('rug', first=4),
    ),
]
INSTANCES = dict(
    images=[
        dict(id=581857, file_name='COCO_train2014_000000581857.jpg', height=20, width=30),
        dict(id=42, file_name='COCO_train2014_000000000042.jpg', height=16, width=24),
    ],
    annotations=[
        dict(id=50, image_id=581857, bbox=[1.5, 2.0, 10.25, 9.0], category_id=1, area=70),
        dict(id=51, image_id=581857, bbox=[20.0, 0.0, 10.0, 20.0], category_id=1, area=70),
        dict(id=52, image_id=581857, bbox=[20.0, 3.0, 0.0, 5.0], category_id=1, area=0),
        dict(id=60, image_id=42, bbox=[0.0, 0.0, 8.0, 8.0], category_id=3, area=60),
        dict(id=61, image_id=42, bbox=[8.0, 8.0, 8.0, 8.0], category_id=3, area=60),
    ],
    categories=[dict(id=1, name='person'), dict(id=3, name='cat')],
)


@pytest.fixture
def root(tmp_path):
    """A folder in the layout of docs/tasks/grounding.md."""
    image_folder, files = tmp_path / 'coco/train2014', tmp_path / 'refcoco+'
    image_folder.mkdir(parents=True)
    files.mkdir()
    for image in INSTANCES['images']:
        pixels = np.full((image['height'], image['width'], 3), 90, np.uint8)
        cv2.imwrite(str(image_folder / image['file_name']), pixels)
    (files / 'refs(unc).p').write_bytes(pickle.dumps(REFERENCES, protocol=2))
    (files / 'instances.json').write_text(json.dumps(INSTANCES))
    return tmp_path


@pytest.fixture
def read(root):
    """Builds a reader of that folder."""

    def make(split, test_mode=True, **kwargs):
        return ReferDataset(
            'refcoco+/refs(unc).p',
            split=split,
            instances='refcoco+/instances.json',
            data_root=str(root),
            data_prefix=dict(image='coco/train2014'),
            test_mode=test_mode,
            pipeline=TEST if test_mode else TRAIN,
            **kwargs,
        )

    return make


def test_training_samples_have_an_image_and_an_expression_without_a_box(read):
    samples = [sample['data_samples'] for sample in read('train', test_mode=False)]
    assert [(s.image_id, s.text) for s in samples] == [
        (581857, 'navy blue shirt'),
        (581857, 'woman back'),
    ]
    assert all(s.image_path.endswith('train2014/COCO_train2014_000000581857.jpg') for s in samples)
    assert not any(hasattr(s, name) for s in samples for name in FIELDS)


def test_test_samples_have_the_true_box_and_the_annotated_boxes_with_an_area(read):
    sample = read(['val', 'testA'])[0]['data_samples']
    assert (sample.ref_id, sample.sent_id, sample.split, sample.text) == (
        6,
        2,
        'val',
        'the half eaten one',
    )
    assert sample.size == (20, 30)
    assert sample.box == [20.0, 0.0, 10.0, 20.0]
    assert sample.proposals == [[1.5, 2.0, 10.25, 9.0], [20.0, 0.0, 10.0, 20.0]]
    assert [s['data_samples'].split for s in read(['testB', 'testA'])] == ['testA', 'testB']


def test_a_dataset_does_not_keep_the_instances(read):
    for dataset in (read('testA'), read('train', test_mode=False)):
        assert not any(isinstance(value, Instances) for value in vars(dataset).values())


def test_training_as_published_does_not_crop():
    config = Config.fromfile('configs/_base_/datasets/refcoco_plus.py')
    _, resize, augment, *_ = config.train_pipeline
    image = torch.randint(0, 256, (3, 37, 61), dtype=torch.uint8)
    expected = build_pipeline([resize])({'img': image})['img']
    for seed in range(10):
        torch.manual_seed(seed)
        result = build_pipeline([resize, {**augment, 'num_ops': 0}])({'img': image})['img']
        assert torch.equal(result, expected)


DETECTIONS = [
    {'image_id': 42, 'box': [1, 2, 3, 4], 'score': 0.9, 'category_id': 1, 'det_id': 0},
    {'image_id': 7, 'box': [1, 1, 1, 1], 'score': 0.9},
    {'image_id': 42, 'box': [5, 5, 2.5, 2], 'score': 0.5},
    {'image_id': 42, 'box': [5, 5, 2.5, 0], 'score': 0.5},
]


@pytest.mark.parametrize(
    'content',
    [DETECTIONS, {'7': [[1, 1, 1, 1]], '42': [[1, 2, 3, 4, 0.9], [5, 5, 2.5, 2], [5, 5, 2.5, 0]]}],
    ids=['MAttNet', 'ALBEF'],
)
def test_a_detectors_proposals_are_read_in_both_formats(read, root, content):
    (root / 'dets.json').write_text(json.dumps(content))
    sample = read('testA', proposals='dets.json')[0]['data_samples']
    assert sample.proposals == [[1, 2, 3, 4], [5, 5, 2.5, 2]]


def test_images_without_proposals_and_files_with_another_layout_are_named(read, root):
    (root / 'dets.json').write_text(json.dumps(DETECTIONS))
    with pytest.raises(ValueError, match=r'dets\.json has no box with an area for 1 of 2 .*581857'):
        read(['val', 'testA'], proposals='dets.json')
    (root / 'dets.json').write_text(json.dumps([{'image_id': 42, 'bbox': [1, 2, 3, 4]}]))
    with pytest.raises(ValueError, match=r"dets\.json cannot be read: key 'box'.* proposals"):
        read('testA', proposals='dets.json')


@pytest.mark.parametrize(
    'box, message',
    [
        ([1, 2, 0, 5], r'the box of ann_id 60 is \[1.0, 2.0, 0.0, 5.0\] in .*instances\.json'),
        ([1, 2, float('nan'), 5], r'instances\.json cannot.*box of annotation 60 is .*nan'),
        ([1, 2, -3, 5], r'instances\.json cannot.*box of annotation 60 is \[1, 2, -3, 5\]'),
    ],
)
def test_a_box_that_cannot_be_scored_is_named_when_the_dataset_is_built(read, root, box, message):
    annotations = [{**a, 'bbox': box} if a['id'] == 60 else a for a in INSTANCES['annotations']]
    (root / 'refcoco+/instances.json').write_text(
        json.dumps({**INSTANCES, 'annotations': annotations})
    )
    with pytest.raises(ValueError, match=message):
        read('testA')


def test_an_image_without_candidate_boxes_is_named_when_the_dataset_is_built(read, root):
    annotations = [{**a, 'image_id': 581857} for a in INSTANCES['annotations']]
    (root / 'refcoco+/instances.json').write_text(
        json.dumps({**INSTANCES, 'annotations': annotations})
    )
    with pytest.raises(ValueError, match=r'instances\.json has no box with an area .*image 42'):
        read('testA')
    for boxes in ([[5, 5, 2.5, 0]], []):
        (root / 'dets.json').write_text(json.dumps({'42': boxes}))
        with pytest.raises(ValueError, match=r'dets\.json has no box with an area .*image 42'):
            read('testA', proposals='dets.json')
    (root / 'dets.json').write_text('{"42": [[5, 5, NaN, 2]]}')
    with pytest.raises(ValueError, match=r'dets\.json cannot.*the box of image 42 is .*nan'):
        read('testA', proposals='dets.json')


def test_albefs_lists_give_the_same_test_samples_and_number_training_images(read, root):
    image = 'coco/train2014/COCO_train2014_000000000042.jpg'
    other = 'coco/train2014/COCO_train2014_000000581857.jpg'
    (root / 'train.json').write_text(
        json.dumps(
            [{'image': i, 'text': t} for i, t in ((image, 'A cat.'), (other, 'b'), (image, 'c'))]
        )
    )
    train = AlbefReferringDataset('train.json', data_root=str(root), pipeline=TRAIN)
    samples = [sample['data_samples'] for sample in train]
    assert [(s.image_id, s.text) for s in samples] == [(0, 'a cat'), (1, 'b'), (0, 'c')]

    (root / 'test.json').write_text(json.dumps([{'image': image, 'text': 'rug', 'ref_id': 10}]))
    files = dict(references='refcoco+/refs(unc).p', instances='refcoco+/instances.json')
    common = dict(data_root=str(root), pipeline=TEST, test_mode=True)
    test = AlbefReferringDataset('test.json', **files, **common)[0]
    expected = read('testB')[0]
    assert torch.equal(test['inputs'], expected['inputs'])
    sample, expected = test['data_samples'], expected['data_samples']
    for name in ('text', 'image_id', *set(FIELDS) - {'sent_id'}):
        assert getattr(sample, name) == getattr(expected, name), name

    with pytest.raises(ValueError, match=r'test mode dataset\.references and dataset\.instances'):
        AlbefReferringDataset('test.json', **common)
    (root / 'test.json').write_text(json.dumps([{'image': image, 'text': 'rug', 'ref_id': 77}]))
    with pytest.raises(ValueError, match=r'(?s)test\.json.*ref_id 77 is unknown'):
        AlbefReferringDataset('test.json', **files, **common)


class Malicious:
    def __reduce__(self):
        return os.system, ('touch stolen',)


@pytest.mark.parametrize('protocol', [0, 2, 4])
def test_a_pickle_with_code_is_refused_and_the_code_does_not_run(tmp_path, monkeypatch, protocol):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / 'refs(unc).p'
    file.write_bytes(pickle.dumps([{'ref_id': 1}, Malicious()], protocol))
    with pytest.raises(ValueError, match=r'refs\(unc\)\.p is not a pickle of plain.*system'):
        read_plain_pickle(file)
    assert not (tmp_path / 'stolen').exists()


@pytest.mark.parametrize('content', [b'', b'no pickle', pickle.dumps(REFERENCES)[:-20]])
def test_an_invalid_pickle_is_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / 'refs.p').write_bytes(content)
    with pytest.raises(ValueError, match=r'refs\.p is not a pickle'):
        read_plain_pickle(tmp_path / 'refs.p')


def test_strings_of_python_2_can_be_read(tmp_path):
    # [{'split': 'train', 'sent': 'caf\xe9'}], as Python 2 writes byte strings.
    (tmp_path / 'refs.p').write_bytes(
        b'\x80\x02]q\x01}q\x02(U\x05splitq\x03U\x05trainq\x04U\x04sentq\x05U\x04caf\xe9q\x06ua.'
    )
    assert read_plain_pickle(tmp_path / 'refs.p') == [{'split': 'train', 'sent': 'café'}]


def test_unknown_splits_ids_and_layouts_are_errors_that_name_the_file(read, root):
    with pytest.raises(ValueError, match=r"no split \['test'\].*testA"):
        read('test')
    file = root / 'refcoco+/refs(unc).p'
    for change, message in (
        ({'ann_id': 99}, 'ann_id 99 is unknown'),
        ({'image_id': 99}, 'image_id 99 is unknown'),
    ):
        file.write_bytes(pickle.dumps([{**REFERENCES[1], **change}], protocol=2))
        with pytest.raises(ValueError, match=rf'(?s)refs\(unc\)\.p.*{message}'):
            read('val')
    file.write_bytes(pickle.dumps([{'split': 'val', 'image_id': 42}], protocol=2))
    with pytest.raises(ValueError, match=r"(?s)'sentences' is missing.*Expected a pickled list"):
        read('val')
    (root / 'refcoco+/instances.json').write_text('{"images": [{"id": 1}]}')
    with pytest.raises(ValueError, match=r"instances\.json cannot be read: .* COCO's instances"):
        read('val')


def test_further_files_that_cannot_be_read_are_named(read, root):
    (root / 'dets.json').write_text('')
    with pytest.raises(ValueError, match=r'dets\.json is not valid JSON'):
        read('val', proposals='dets.json')
    (root / 'refcoco+/refs(unc).p').write_bytes(pickle.dumps([{'ann_id': 1}]))
    (root / 'test.json').write_text('[]')
    files = dict(references='refcoco+/refs(unc).p', instances='refcoco+/instances.json')
    with pytest.raises(ValueError, match=r"refs\(unc\)\.p cannot be read: key 'ref_id'"):
        AlbefReferringDataset('test.json', data_root=str(root), test_mode=True, **files)
    (root / 'refcoco+/instances.json').write_text('')
    with pytest.raises(ValueError, match=r'instances\.json is not valid JSON'):
        read('val')


def test_the_embedded_world_can_be_read_as_refer(tiny_world):
    references = read_plain_pickle(tiny_world / 'refcoco+/refs(unc).p')
    coco = COCO(str(tiny_world / 'refcoco+/instances.json'))
    assert {r['split'] for r in references} == {'train', 'val', 'testA', 'testB'}
    for reference in references:
        annotation = coco.anns[reference['ann_id']]
        assert annotation['image_id'] == reference['image_id']
        assert reference['sent_ids'] == [s['sent_id'] for s in reference['sentences']]
    sent_ids = [sent_id for reference in references for sent_id in reference['sent_ids']]
    assert len(set(sent_ids)) == len(sent_ids)
    assert len({reference['ref_id'] for reference in references}) == len(references)
    dataset = ReferDataset(
        'refcoco+/refs(unc).p',
        split=['val', 'testA', 'testB'],
        test_mode=True,
        pipeline=TEST,
        instances='refcoco+/instances.json',
        data_root=str(tiny_world),
    )
    for sample in dataset:
        data_sample = sample['data_samples']
        assert data_sample.box in data_sample.proposals and data_sample.size == (32, 32)
        assert sample['inputs'].shape == (3, 32, 32)
