"""Readers of visual entailment."""

import json
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest

from xmodal.datasets import ENTAILMENT_CLASSES, AlbefEntailmentDataset, SnliVeDataset

PIPELINE = [
    dict(type='LoadImage'),
    dict(type='PackImageText', fields=('label', 'pair_id')),
]


@pytest.fixture
def write(tmp_path):
    """Writes an annotation file and the images 7.jpg and 8.jpg."""
    for name in ('7.jpg', '8.jpg'):
        cv2.imwrite(str(tmp_path / name), np.full((20, 24, 3), 60, np.uint8))

    def make(items, lines=True):
        text = '\n'.join(map(json.dumps, items)) if lines else json.dumps(items)
        (tmp_path / 'pairs.json').write_text(text)
        return dict(data_root=str(tmp_path), ann_file='pairs.json', pipeline=PIPELINE)

    return make


def pair(image, hypothesis, label, **fields):
    return {'Flickr30K_ID': image, 'sentence2': hypothesis, 'gold_label': label, **fields}


def summary(sample):
    data_sample = sample['data_samples']
    path = Path(data_sample.image_path)
    return path.name, data_sample.text, data_sample.label, data_sample.pair_id


def test_pairs_of_the_official_file_are_read(write):
    cfg = write(
        [
            pair('7', 'A man sleeps.', 'contradiction', pairID='7.jpg#2r1c'),
            pair('8', 'Two people (outside)', 'entailment'),
            pair('7', 'it is cold', 'neutral'),
        ]
    )
    samples = list(SnliVeDataset(**cfg))
    assert [summary(sample) for sample in samples] == [
        ('7.jpg', 'a man sleeps', 0, '7.jpg#2r1c'),
        ('8.jpg', 'two people outside', 2, 'pairs-1'),
        ('7.jpg', 'it is cold', 1, 'pairs-2'),
    ]
    ids = [sample['data_samples'].image_id for sample in samples]
    assert ids[0] == ids[2] != ids[1]


def test_pairs_without_an_agreed_label_are_dropped_and_counted(write, monkeypatch):
    log = []
    monkeypatch.setattr('xmodal.datasets.entailment.print_log', lambda text, *_: log.append(text))
    cfg = write([pair('7', 'a', '-'), pair('8', 'b', 'neutral'), pair('8', 'c', '-')])
    dataset = SnliVeDataset(**cfg)
    assert [summary(sample) for sample in dataset] == [('8.jpg', 'b', 1, 'pairs-1')]
    assert len(log) == 1 and '2 pairs without a label dropped' in log[0]


def test_albefs_lists_give_the_same_samples(write):
    rows = [('7', 'A man sleeps.', 'contradiction'), ('8', 'cold', 'neutral')]
    official = [summary(s) for s in SnliVeDataset(**write([pair(*row) for row in rows]))]
    items = [dict(zip(('image', 'sentence', 'label'), row, strict=True)) for row in rows]
    assert [summary(s) for s in AlbefEntailmentDataset(**write(items, lines=False))] == official


@pytest.mark.parametrize(
    ('items', 'message'),
    [
        ([pair('7', 'a b', 'entails')], "gold_label is 'entails', expected 'contradiction' or"),
        ([{'Flickr30K_ID': '7', 'gold_label': 'neutral'}], "line 1: key 'sentence2' is missing"),
        (
            [{'Flikr30kID': '7.jpg', 'sentence2': 'a', 'gold_label': 'neutral'}],
            r"key 'Flickr30K_ID' is missing.* set dataset\.image_path='\{Flikr30kID\}'",
        ),
        ([pair('7', 'a', 'neutral'), 7], 'line 2: it is 7, not an object'),
        ([pair('7', 'a', '-'), pair('7', 'b', 'no')], "line 2: gold_label is 'no'"),
        ([], 'no record'),
    ],
)
def test_a_file_with_another_layout_is_an_error_that_names_it(write, items, message):
    with pytest.raises(ValueError, match=rf'(?s)(pairs\.json.*{message}|{message}.*pairs\.json)'):
        SnliVeDataset(**write(items))


def test_a_line_that_is_not_json_is_named(write, tmp_path):
    cfg = write([pair('7', 'a', 'neutral')])
    with open(tmp_path / 'pairs.json', 'a') as file:
        file.write('\n{"Flickr30K_ID": ')
    with pytest.raises(ValueError, match=r'pairs\.json .* after 1 records: line 2: '):
        SnliVeDataset(**cfg)


def test_a_byte_order_mark_does_not_belong_to_the_first_line(write, tmp_path):
    cfg = write([pair('7', 'a', 'neutral')])
    text = (tmp_path / 'pairs.json').read_text()
    (tmp_path / 'pairs.json').write_text(text, encoding='utf-8-sig')
    assert len(SnliVeDataset(**cfg)) == 1


def test_the_embedded_world_can_be_read_as_snli_ve(tiny_world):
    dataset = SnliVeDataset(
        'snli_ve/snli_ve_train.jsonl',
        image_path='{Flickr30K_ID}.png',
        data_root=str(tiny_world),
        data_prefix=dict(image='images'),
        pipeline=PIPELINE,
        test_mode=True,
    )
    labels = Counter(sample['data_samples'].label for sample in dataset)
    assert set(labels) == {0, 1, 2} and len(set(labels.values())) == 1


def read_if_available(folder, *args, **kwargs):
    if not Path(folder).exists():
        pytest.skip(f'needs {folder}')
    return SnliVeDataset(*args, pipeline=PIPELINE, test_mode=True, **kwargs)


def test_real_pairs_of_snli_ve_can_be_read():
    dataset = read_if_available(
        'data/vl_fixtures',
        'vl_fixtures/visual_entailment/sample_pairs.jsonl',
        data_root='data',
        data_prefix=dict(image='vl_fixtures/images/visual_entailment'),
    )
    assert len(dataset) == 16
    labels = [ENTAILMENT_CLASSES[sample['data_samples'].label] for sample in dataset]
    assert set(labels) == set(ENTAILMENT_CLASSES)


def test_real_pairs_on_flickr8k_can_be_read():
    dataset = read_if_available(
        'data/flickr8k/snli_ve_mini',
        'snli_ve_mini/dev.jsonl',
        data_root='data/flickr8k',
        data_prefix=dict(image='images'),
        image_path='{image}',
    )
    assert len(dataset) == 539
    assert summary(dataset[0])[1] == 'only one woman is wearing a head scarf'
