"""Readers of visual reasoning."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from xmodal.datasets import AlbefReasoningDataset, Nlvr2Dataset, NlvrDataset
from xmodal.evaluation import ReasoningMetric

FIELDS = dict(type='PackImageText', fields=('label', 'identifier', 'group'))
TWO = [dict(type='ForEachImage', transforms=[dict(type='LoadImage')]), FIELDS]
ONE = [dict(type='LoadImage'), FIELDS]


@pytest.fixture
def write(tmp_path):
    """Writes an annotation file and grey images, whose brightness is their index times ten."""

    def make(items, images, lines=True, name='dev.json', pipeline=TWO):
        for index, image in enumerate(images):
            file = tmp_path / image
            file.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(file), np.full((8, 32, 3), 10 * index, np.uint8))
        text = '\n'.join(map(json.dumps, items)) if lines else json.dumps(items)
        (tmp_path / name).write_text(text)
        return dict(data_root=str(tmp_path), ann_file=name, pipeline=pipeline)

    return make


def example(identifier, label, sentence='Two dogs.', **fields):
    urls = {'left_url': 'http://a', 'right_url': 'http://b'}
    return {'identifier': identifier, 'label': label, 'sentence': sentence, **urls, **fields}


def summary(sample):
    data_sample = sample['data_samples']
    return data_sample.text, data_sample.label, data_sample.identifier, data_sample.group


def brightness(sample):
    return [int(image.float().mean()) for image in sample['inputs']]


def test_nlvr2_finds_images_at_the_paths_of_the_archives(write):
    cfg = write(
        [
            example('dev-850-0-1', 'True', 'Two dogs, (at most).'),
            example('dev-850-3-1', 'False'),
            example('train-4-2-0', 'False', directory=17),
        ],
        [
            'dev/dev-850-0-img0.png',
            'dev/dev-850-0-img1.png',
            'dev/dev-850-3-img0.png',
            'dev/dev-850-3-img1.png',
            'images/train/17/train-4-2-img0.png',
            'images/train/17/train-4-2-img1.png',
        ],
    )
    samples = list(Nlvr2Dataset(**cfg))
    assert [summary(sample) for sample in samples] == [
        ('two dogs at most', 1, 'dev-850-0-1', 'dev-850-1'),
        ('two dogs', 0, 'dev-850-3-1', 'dev-850-1'),
        ('two dogs', 0, 'train-4-2-0', 'train-4-0'),
    ]
    assert [brightness(sample) for sample in samples] == [[0, 10], [20, 30], [40, 50]]
    assert samples[0]['inputs'].shape == (2, 3, 8, 32)


def test_nlvr2_finds_images_at_other_paths(write):
    items = [example('dev-1-0-0', 'True', left_url='x.png', right_url='y.png')]
    cfg = write(items, ['x.png', 'y.png', 'all/dev-1-0-1.png', 'all/dev-1-0-0.png'])
    assert brightness(Nlvr2Dataset(image_path='{url}', **cfg)[0]) == [0, 10]
    assert brightness(Nlvr2Dataset(image_path='all/{pair}-{side}.png', **cfg)[0]) == [30, 20]


def test_albefs_lists_give_images_sentence_and_label(write):
    items = [
        {'images': ['a/x.png', 'y.png'], 'sentence': 'Two dogs.', 'label': 'True'},
        {'images': ['y.png', 'a/x.png'], 'sentence': 'A cat', 'label': 'False'},
    ]
    samples = list(AlbefReasoningDataset(**write(items, ['a/x.png', 'y.png'], lines=False)))
    assert [summary(sample) for sample in samples] == [
        ('two dogs', 1, 'dev-0', ''),
        ('a cat', 0, 'dev-1', ''),
    ]
    assert [brightness(sample) for sample in samples] == [[0, 10], [10, 0]]


def test_two_of_albefs_lists_are_tested_together(write):
    item = {'images': ['x.png', 'x.png'], 'sentence': 'Two dogs.', 'label': 'True'}
    for name in ('dev.json', 'test.json'):
        cfg = write([item, item], ['x.png'], lines=False, name=name)
    dataset = AlbefReasoningDataset(**{**cfg, 'ann_file': ['dev.json', 'test.json']})
    metric = ReasoningMetric()
    metric.process(None, [{**dataset.get_data_info(n, None), 'predicted': n < 3} for n in range(4)])
    assert metric.evaluate(4) == {'accuracy': 75.0}


@pytest.mark.parametrize('reader', [AlbefReasoningDataset, NlvrDataset])
def test_files_of_one_name_are_tested_together(write, tmp_path, reader):
    item = {'images': ['x.png', 'x.png'], 'sentence': 'Two dogs.', 'label': 'True'}
    if reader is NlvrDataset:
        item |= {'identifier': '72-0', 'directory': '3'}
    images = ['x.png', *(f'dev/images/3/dev-72-0-{order}.png' for order in range(6))]
    names = ['first/dev.json', 'second/dev.json']
    for name in names:
        (tmp_path / name).parent.mkdir()
        cfg = write([item], images, lines=reader is NlvrDataset, name=name)
    dataset = reader(**{**cfg, 'ann_file': names})
    samples = [dataset.get_data_info(index, None) for index in range(len(dataset))]
    metric = ReasoningMetric()
    metric.process(None, [{**sample, 'predicted': 1} for sample in samples])
    assert metric.evaluate(len(samples))['accuracy'] == 100
    groups = {sample['group'] for sample in samples}  # of one presentation in one file
    assert len(groups) == (2 if reader is NlvrDataset else 1)
    assert str(tmp_path) not in ''.join(sample['identifier'] for sample in samples)


def test_each_order_of_the_boxes_of_nlvr_is_a_sample(write):
    images = [f'dev/images/3/dev-72-1-{order}.png' for order in range(6)]
    items = [{'identifier': '72-1', 'sentence': 'A tower', 'label': 'true', 'directory': '3'}]
    samples = list(NlvrDataset(**write(items, images, pipeline=ONE)))
    assert [summary(sample) for sample in samples] == [
        ('a tower', 1, f'dev-72-1-{order}', 'dev-72') for order in range(6)
    ]
    assert [int(sample['inputs'].float().mean()) for sample in samples] == list(range(0, 60, 10))


@pytest.mark.parametrize(
    ('reader', 'item', 'message'),
    [
        (Nlvr2Dataset, example('dev-1-0-0', 'maybe'), "label is 'maybe', expected"),
        (
            Nlvr2Dataset,
            example('dev-1-0', 'True'),
            "identifier is 'dev-1-0', expected split-",
        ),
        (Nlvr2Dataset, {'identifier': 'dev-1-0-0', 'left_url': 'a'}, "key 'right_url' is missing"),
        (Nlvr2Dataset, example('train-1-0-0', 'True'), "key 'directory' is missing"),
        (NlvrDataset, example('1-0', 'true'), "key 'directory' is missing"),
    ],
)
def test_a_file_with_another_layout_is_an_error_that_names_it(write, reader, item, message):
    with pytest.raises(ValueError, match=rf'(?s)dev\.json.*{message}'):
        reader(**write([item], []))


def test_albefs_lists_need_two_images_per_item(write):
    items = [{'images': ['x.png'], 'sentence': 'a', 'label': 'True'}]
    with pytest.raises(ValueError, match=r"images is \['x\.png'\], expected two images"):
        AlbefReasoningDataset(**write(items, ['x.png'], lines=False))


def test_albefs_lists_may_have_another_number_of_images(write):
    items = [{'images': ['x.png'], 'sentence': 'a', 'label': 'True'}]
    dataset = AlbefReasoningDataset(**write(items, ['x.png'], lines=False), images=1)
    assert dataset.records[0]['images'] == ['x.png']
    with pytest.raises(ValueError, match=r"images is \['x\.png'\], expected 3 images"):
        AlbefReasoningDataset(**write(items, ['x.png'], lines=False), images=3)


def test_the_error_for_missing_images_names_a_path(write):
    cfg = write([example('dev-1-0-0', 'True')], [])
    with pytest.raises(FileNotFoundError, match=r'2 of 2 checked images .*dev/dev-1-0-img0\.png'):
        Nlvr2Dataset(**cfg)


def test_the_embedded_world_can_be_read_as_nlvr2(tiny_world):
    for split in ('train', 'dev', 'test1'):
        dataset = Nlvr2Dataset(
            f'nlvr2/{split}.json',
            image_path='{url}',
            data_root=str(tiny_world),
            pipeline=TWO,
            test_mode=True,
        )
        samples = list(dataset)
        assert len(samples) % 4 == 0
        assert sum(sample['data_samples'].label for sample in samples) == len(samples) / 2
        assert samples[0]['inputs'].shape == (2, 3, 32, 32)


def test_real_examples_of_nlvr2_can_be_read():
    if not Path('data/vl_fixtures').exists():
        pytest.skip('needs data/vl_fixtures')
    dataset = Nlvr2Dataset(
        'vl_fixtures/nlvr2/tiny-dev.json',
        data_root='data',
        image_path='vl_fixtures/images/nlvr2/{pair}-img{side}.jpg',
        test_mode=True,
        pipeline=[
            dict(
                type='ForEachImage',
                transforms=[dict(type='LoadImage'), dict(type='ResizeImage', size=32)],
            ),
            FIELDS,
        ],
    )
    samples = list(dataset)
    assert len(samples) == 8
    assert summary(samples[0])[1:] == (0, 'dev-850-0-0', 'dev-850-0')


def test_an_example_may_have_keys_with_the_names_of_path_fields(write):
    keys = dict.fromkeys(('split', 'pair', 'side', 'url', 'order'), 'other')
    cfg = write([example('dev-1-0-0', 'True', **keys)], ['dev/dev-1-0-img0.png'])
    paths = Nlvr2Dataset(**cfg).records[0]['images']
    assert paths == ['dev/dev-1-0-img0.png', 'dev/dev-1-0-img1.png']
    cfg = write([example('1-0', 'true', directory='3', **keys)], ['dev/images/3/dev-1-0-5.png'])
    records = NlvrDataset(**cfg).records
    assert [r['images'] for r in records] == [[f'dev/images/3/dev-1-0-{n}.png'] for n in range(6)]


@pytest.mark.parametrize('split', ['dev', 'hidden'])
def test_real_images_of_nlvr_are_read_and_split_into_boxes(split):
    if not Path('data/nlvr1').exists():
        pytest.skip('needs data/nlvr1')
    dataset = NlvrDataset(
        f'nlvr1/{split}.json',
        data_root='data',
        test_mode=True,
        image_path='nlvr1/{split}/{split}-{identifier}-{order}.png',
        pipeline=[ONE[0], dict(type='SplitImage', parts=3, share=0.25), FIELDS],
    )
    first, second = dataset[0], dataset[1]
    assert len(dataset) == 6 * {'dev': 989, 'hidden': 985}[split]
    assert first['inputs'].shape == (3, 3, 100, 100)
    # Two orders of one presentation have the same boxes.
    boxes = [{box.numpy().tobytes() for box in sample['inputs']} for sample in (first, second)]
    assert boxes[0] == boxes[1]
    assert not torch.equal(first['inputs'], second['inputs'])
