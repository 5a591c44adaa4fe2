"""Readers of image-caption sets, samplers and what happens to broken pictures."""

import json
import os
from collections import Counter

import cv2
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from xmodal.datasets.captions import AlbefJsonDataset, CocoCaptionDataset, KarpathyDataset
from xmodal.datasets.samplers import EpochSampler
from xmodal.datasets.text import clean_caption
from xmodal.datasets.transforms import BrokenImageError

PIPELINE = [dict(type='LoadImage'), dict(type='PackImageText')]
AUGMENTED = [dict(type='LoadImage'), dict(type='AlbefAugment', size=16), dict(type='PackImageText')]


GOOD = {'image': '0.png', 'caption': 'a'}


def facts(sample):
    found = sample['data_samples']
    return os.path.basename(found.image_path), found.image_id, found.text


@pytest.fixture
def write(tmp_path):
    """Writes a JSON list and four pictures it may name."""
    for number in range(4):
        picture = np.full((20, 24, 3), 60 * number, np.uint8)
        cv2.imwrite(str(tmp_path / f'{number}.png'), picture)

    def make(items, name='list.json'):
        (tmp_path / name).write_text(json.dumps(items))
        return dict(data_root=str(tmp_path), ann_file=name, pipeline=PIPELINE)

    return make


def test_three_formats_of_one_world_give_the_same_samples(tiny_world):
    common = dict(data_root=str(tiny_world), pipeline=PIPELINE, test_mode=True)
    albef = AlbefJsonDataset(ann_file='albef/test.json', **common)
    karpathy = KarpathyDataset(ann_file='karpathy/dataset_shapes.json', split='test', **common)
    coco = CocoCaptionDataset(
        ann_file='coco/captions_test.json',
        **common,
        data_prefix=dict(image=_coco_prefix(tiny_world)),
    )
    assert len(albef) == len(karpathy) == len(coco) == 10
    for one, two, three in zip(albef, karpathy, coco, strict=True):
        assert facts(one)[0::2] == facts(two)[0::2] == facts(three)[0::2]
        assert torch.equal(one['inputs'], two['inputs'])
        assert torch.equal(one['inputs'], three['inputs'])
    written = json.loads((tiny_world / 'albef/test.json').read_text())
    assert [facts(sample)[2] for sample in albef] == [item['caption'] for item in written]


def _coco_prefix(world):
    """The folder that COCO's file names are below."""
    name = json.loads((world / 'coco/captions_test.json').read_text())['images'][0]['file_name']
    return next(p for p in ('', 'images', 'images/test') if (world / p / name).exists())


def test_captions_are_a_text_or_a_list_and_each_or_one_drawn_an_epoch(write):
    items = [{'image': '0.png', 'caption': ['One.', 'Two!']}, {'image': '1.png', 'caption': 'x'}]
    cfg = write(items)
    each = AlbefJsonDataset(captions='each', **cfg)
    assert [facts(s)[2] for s in each] == ['one', 'two', 'x']
    drawn = AlbefJsonDataset(**cfg)
    texts = [facts(drawn[0, epoch])[2] for epoch in range(40)]
    assert len(drawn) == 2 and 8 < Counter(texts)['one'] < 32
    assert texts == [facts(drawn[0, epoch])[2] for epoch in range(40)]


def test_image_ids_are_equal_for_equal_pictures_over_several_files(write):
    write([{'image': '1.png', 'caption': 'b'}, {'image': '2.png', 'caption': 'c'}], 'more.json')
    cfg = write([{'image': '0.png', 'caption': 'a'}, {'image': '1.png', 'caption': 'b'}])
    cfg['ann_file'] = ['list.json', 'more.json']
    ids = [facts(sample)[1] for sample in AlbefJsonDataset(**cfg)]
    assert ids == [0, 1, 1, 2]


@pytest.mark.parametrize('test_mode', [False, True])
def test_an_id_may_repeat_with_its_image_and_not_with_another(write, test_mode):
    items = [{'image': f'{n}.png', 'caption': f'the {n}', 'image_id': 7 + n} for n in (0, 1, 0)]
    found = AlbefJsonDataset(test_mode=test_mode, **write(items))
    assert [facts(sample)[1] for sample in found] == ([7, 8] if test_mode else [7, 8, 7])
    items[2]['image'] = '2.png'
    with pytest.raises(ValueError, match=r'list\.json: image_id 7 is of 0\.png and of 2\.png'):
        AlbefJsonDataset(test_mode=test_mode, **write(items))


def test_two_images_of_one_id_in_a_coco_file_are_named(write):
    images = [{'id': 7, 'file_name': '0.png'}, {'id': 7, 'file_name': '1.png'}]
    cfg = write({'images': images, 'annotations': [{'image_id': 7, 'caption': 'a'}]})
    with pytest.raises(ValueError, match=r'list\.json.*have the id 7: 0\.png and 1\.png'):
        CocoCaptionDataset(**cfg)


def test_empty_captions_are_left_out(write):
    items = [{'image': '0.png', 'caption': ['?!', 'a cat']}, {'image': '1.png', 'caption': '.'}]
    cfg = write(items)
    found = AlbefJsonDataset(captions='each', **cfg)
    assert [facts(sample)[2] for sample in found] == ['a cat']


def test_a_caption_that_is_cut_within_a_character_is_read(write):
    found = AlbefJsonDataset(**write([{'image': '0.png', 'caption': 'a smile \ud83d'}]))
    assert facts(found[0])[2] == 'a smile'


def test_a_pointer_of_git_lfs_is_said_to_be_one(write, tmp_path):
    cfg = write([])
    (tmp_path / 'list.json').write_text('version https://git-lfs.github.com/spec/v1\n')
    for reader in (AlbefJsonDataset, CocoCaptionDataset):
        with pytest.raises(ValueError, match=r'list\.json .*it is a pointer of Git LFS'):
            reader(**cfg)


def test_a_changed_file_gets_a_new_index(write):
    cfg = write([{'image': '0.png', 'caption': 'old'}])
    assert facts(AlbefJsonDataset(**cfg)[0])[2] == 'old'
    cfg = write([{'image': '0.png', 'caption': 'newer'}])
    assert facts(AlbefJsonDataset(**cfg)[0])[2] == 'newer'


@pytest.mark.parametrize(
    'items, message',
    [
        ([{'img': '0.png', 'caption': 'a'}], "key 'image' is missing"),
        ([{'image': '0.png', 'caption': 7}], 'after 0 images'),
        ([GOOD, {'image': '0.png', 'caption': {'a': 1}}], "after 1 images: captions .* {'a': 1}"),
        ([GOOD, {'image': '0.png', 'caption': ['a', None]}], 'after 1 images: a caption .* None'),
        ([GOOD, {'image': 5, 'caption': 'a'}], 'after 1 images: the image is 5'),
        ([GOOD, {'image': None, 'caption': 'a'}], 'after 1 images: the image is None'),
        ([GOOD, {'image': '', 'caption': 'a'}], "after 1 images: the image is ''"),
        ([GOOD, {'image': '\ud83d.png', 'caption': 'a'}], 'after 1 images: .*can.t encode'),
        ([GOOD | {'image_id': 2**70}], f'the id of 0.png is {2**70}, expected a number of 64'),
        ([], 'no image with a caption'),
    ],
)
def test_a_file_of_another_layout_is_an_error_that_names_it(write, items, message):
    with pytest.raises(ValueError, match=rf'(?s)(list\.json.*{message}|{message}.*list\.json)'):
        AlbefJsonDataset(**write(items))


def test_missing_files_and_pictures_say_where_they_were_looked_for(write, tiny_world):
    with pytest.raises(FileNotFoundError, match=r'none\.json is not there .*docs/data\.md'):
        AlbefJsonDataset(ann_file='none.json')
    with pytest.raises(FileNotFoundError, match=r'1 of 1 images .*away/9\.png .*list\.json'):
        AlbefJsonDataset(**write([{'image': 'away/9.png', 'caption': 'a'}]))
    with pytest.raises(ValueError, match=r"no split \['dev'\].*test"):
        KarpathyDataset('karpathy/dataset_shapes.json', split='dev', data_root=str(tiny_world))


def test_a_test_needs_all_its_pictures_and_training_some(write, tmp_path):
    for number in range(100):
        (tmp_path / f'{number}.jpg').touch()
    cfg = write([{'image': f'{number}.jpg', 'caption': 'a'} for number in range(100)])
    assert len(AlbefJsonDataset(test_mode=True, **cfg)) == 100
    for number in (50, 51):
        (tmp_path / f'{number}.jpg').unlink()
    assert len(AlbefJsonDataset(**cfg)) == 100
    with pytest.raises(FileNotFoundError, match=r'2 of 100 images .*50\.jpg \(.*list\.json\)'):
        AlbefJsonDataset(test_mode=True, **cfg)


def test_an_unknown_key_of_data_prefix_is_an_error(tiny_world):
    with pytest.raises(ValueError, match=r"data_prefix has \['img'\], expected 'image' alone"):
        AlbefJsonDataset('albef/train.json', str(tiny_world), dict(img='images'), PIPELINE)


def test_a_broken_picture_is_replaced_in_training_and_an_error_in_test_mode(write, tmp_path):
    items = [{'image': f'{n}.png', 'caption': f'number {n}'} for n in range(4)]
    (tmp_path / '2.png').write_bytes(b'no picture')
    cfg = write(items)
    sample = AlbefJsonDataset(**cfg)[2, 5]['data_samples']
    assert sample.metainfo['skipped'] and '2.png' in sample.metainfo['skipped'][0]
    assert not sample.image_path.endswith('2.png')
    assert sample.image_path == AlbefJsonDataset(**cfg)[2, 5]['data_samples'].image_path
    with pytest.raises(BrokenImageError, match=r'2\.png'):
        AlbefJsonDataset(test_mode=True, **cfg)[2]


def load_all(cfg, workers):
    dataset = AlbefJsonDataset(**{**cfg, 'pipeline': AUGMENTED})
    sampler = EpochSampler(dataset, seed=1)
    sampler.set_epoch(3)
    loader = DataLoader(dataset, 8, sampler=sampler, num_workers=workers, collate_fn=list)
    samples = [sample for batch in loader for sample in batch]
    return [facts(s) for s in samples], torch.stack([s['inputs'] for s in samples])


def test_random_choices_do_not_depend_on_who_makes_them(tiny_world):
    cfg = dict(data_root=str(tiny_world), ann_file='albef/train.json')
    torch.manual_seed(5)
    here, pictures = load_all(cfg, 0)
    torch.manual_seed(6)
    there, others = load_all(cfg, 2)
    assert here == there and torch.equal(pictures, others)


def test_reading_leaves_the_global_generators_alone(tiny_world):
    dataset = AlbefJsonDataset(
        data_root=str(tiny_world), ann_file='albef/train.json', pipeline=AUGMENTED
    )
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    dataset[1, 1]
    assert torch.equal(torch.rand(3), expected)


def sample_on_ranks(monkeypatch, ranks, length, epoch, skip=0):
    orders = []
    for rank in range(ranks):
        monkeypatch.setattr('xmodal.datasets.samplers.get_dist_info', lambda r=rank: (r, ranks))
        sampler = EpochSampler(range(length), seed=3)
        sampler.set_epoch(epoch)
        sampler.skip(skip)
        orders.append(list(sampler))
    return orders


def test_ranks_share_out_an_epoch_and_skip_what_was_seen(monkeypatch):
    orders = sample_on_ranks(monkeypatch, 3, 20, epoch=4)
    seen = [index for order in orders for index, _ in order]
    assert len(seen) == 18 and len(set(seen)) == 18
    assert {epoch for order in orders for _, epoch in order} == {4}
    assert sample_on_ranks(monkeypatch, 3, 20, epoch=5) != orders
    assert sample_on_ranks(monkeypatch, 3, 20, 4, skip=2) == [order[2:] for order in orders]
    with pytest.raises(ValueError, match=r'2 sample\(s\) for 3 processes'):
        sample_on_ranks(monkeypatch, 3, 2, epoch=0)


@pytest.mark.parametrize(
    'text, expected',
    [
        ('A man-eating (tiger), asleep!', 'a man eating tiger asleep'),
        ('Left/right  of <person> ', 'left right of person'),
        ('#1: "Hello;" ~ world?', '1 hello world'),
        ('...', ''),
        ('cut off \ud83d', 'cut off'),
        ('\U0001f600 whole', '\U0001f600 whole'),
        (' '.join(map(str, range(40))), ' '.join(map(str, range(30)))),
    ],
)
def test_captions_are_cleaned_by_albefs_rules(text, expected):
    assert clean_caption(text) == expected
