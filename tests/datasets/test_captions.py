"""Readers of image-caption datasets, samplers and broken images."""

import importlib
import json
import os
import sys
from collections import Counter

import cv2
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from xmodal.datasets import Entry
from xmodal.datasets.captions import AlbefJsonDataset, CocoCaptionDataset, KarpathyDataset
from xmodal.datasets.samplers import EpochSampler
from xmodal.datasets.text import clean_caption
from xmodal.datasets.transforms import BrokenImageError
from xmodal.structures import EMPTY

PIPELINE = [dict(type='LoadImage'), dict(type='PackImageText')]
AUGMENTED = [dict(type='LoadImage'), dict(type='AlbefAugment', size=16), dict(type='PackImageText')]


GOOD = {'image': '0.png', 'caption': 'a'}


def summary(sample):
    data_sample = sample['data_samples']
    return os.path.basename(data_sample.image_path), data_sample.image_id, data_sample.text


@pytest.fixture
def write(tmp_path):
    """Writes a JSON list and four images."""
    for index in range(4):
        image = np.full((20, 24, 3), 60 * index, np.uint8)
        cv2.imwrite(str(tmp_path / f'{index}.png'), image)

    def make(items, name='list.json'):
        (tmp_path / name).write_text(json.dumps(items))
        return dict(data_root=str(tmp_path), ann_file=name, pipeline=PIPELINE)

    return make


@pytest.fixture
def logged(monkeypatch):
    """What readers and indices log."""
    lines = []
    for module in ('base', 'index'):
        name = f'xmodal.datasets.{module}.print_log'
        monkeypatch.setattr(name, lambda message, *_, **__: lines.append(message))
    return lines


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
    for sample, from_karpathy, from_coco in zip(albef, karpathy, coco, strict=True):
        assert summary(sample)[0::2] == summary(from_karpathy)[0::2] == summary(from_coco)[0::2]
        assert torch.equal(sample['inputs'], from_karpathy['inputs'])
        assert torch.equal(sample['inputs'], from_coco['inputs'])
    items = json.loads((tiny_world / 'albef/test.json').read_text())
    assert [summary(sample)[2] for sample in albef] == [item['caption'] for item in items]


def _coco_prefix(world):
    """The folder that contains COCO's file names."""
    name = json.loads((world / 'coco/captions_test.json').read_text())['images'][0]['file_name']
    return next(p for p in ('', 'images', 'images/test') if (world / p / name).exists())


def test_an_epoch_shows_each_caption_or_one_sampled_caption_per_image(write):
    items = [{'image': '0.png', 'caption': ['One.', 'Two!']}, {'image': '1.png', 'caption': 'x'}]
    cfg = write(items)
    each = AlbefJsonDataset(captions='each', **cfg)
    assert [summary(s)[2] for s in each] == ['one', 'two', 'x']
    sampled = AlbefJsonDataset(**cfg)
    texts = [summary(sampled[0, epoch])[2] for epoch in range(40)]
    assert len(sampled) == 2 and 8 < Counter(texts)['one'] < 32
    assert texts == [summary(sampled[0, epoch])[2] for epoch in range(40)]


def test_one_image_in_two_files_has_one_image_id(write):
    write([{'image': '1.png', 'caption': 'b'}, {'image': '2.png', 'caption': 'c'}], 'more.json')
    cfg = write([{'image': '0.png', 'caption': 'a'}, {'image': '1.png', 'caption': 'b'}])
    cfg['ann_file'] = ['list.json', 'more.json']
    ids = [summary(sample)[1] for sample in AlbefJsonDataset(**cfg)]
    assert ids == [0, 1, 1, 2]


def test_an_image_of_a_test_is_listed_once(write):
    items = [{'image': f'{n}.png', 'caption': 'a', 'image_id': n} for n in (0, 1)]
    twice = [*items, {'image': '1.png', 'caption': 'b', 'image_id': 7}]
    with pytest.raises(ValueError, match=r'list\.json: 1\.png has the image_id 1 and 7'):
        AlbefJsonDataset(test_mode=True, **write(twice))
    assert len(AlbefJsonDataset(**write(twice))) == 3
    write(items[1:], 'more.json')
    files = ['list.json', 'more.json']
    with pytest.raises(ValueError, match=r'more\.json: 1 images are in two of them.*1\.png'):
        AlbefJsonDataset(test_mode=True, **{**write(items), 'ann_file': files})
    assert len(AlbefJsonDataset(test_mode=True, **{**write(items[:1]), 'ann_file': files})) == 2


@pytest.mark.parametrize('test_mode', [False, True])
def test_an_id_may_repeat_with_the_same_image_but_not_with_another(write, test_mode):
    items = [{'image': f'{n}.png', 'caption': f'the {n}', 'image_id': 7 + n} for n in (0, 1, 0)]
    dataset = AlbefJsonDataset(test_mode=test_mode, **write(items))
    assert [summary(sample)[1] for sample in dataset] == ([7, 8] if test_mode else [7, 8, 7])
    items[2]['image'] = '2.png'
    with pytest.raises(ValueError, match=r'list\.json: image_id 7 belongs to 0\.png and to 2\.png'):
        AlbefJsonDataset(test_mode=test_mode, **write(items))


def test_a_training_warns_of_an_image_with_two_ids(write, logged):
    items = [{'image': f'{n}.png', 'caption': 'a', 'image_id': 7 + n} for n in (0, 1, 0)]
    AlbefJsonDataset(**write(items))
    assert not [line for line in logged if 'negatives' in line]
    items[2]['image_id'] = 9  # the number of the caption
    AlbefJsonDataset(**write(items))
    (warning,) = (line for line in logged if 'negatives' in line)
    assert 'list.json: 0.png has the image_id 7 and 9: its captions' in warning


def test_an_id_that_marks_an_empty_entry_of_a_queue_is_refused(write):
    items = [{'image': f'{n}.png', 'caption': 'a', 'image_id': n} for n in (0, EMPTY)]
    with pytest.raises(ValueError, match=r'list\.json.* the id of -1\.png is -1, expected an int'):
        AlbefJsonDataset(**write(items))


def test_two_images_with_the_same_id_in_a_coco_file_are_named(write):
    images = [{'id': 7, 'file_name': '0.png'}, {'id': 7, 'file_name': '1.png'}]
    cfg = write({'images': images, 'annotations': [{'image_id': 7, 'caption': 'a'}]})
    with pytest.raises(ValueError, match=r'list\.json.*have the id 7: 0\.png and 1\.png'):
        CocoCaptionDataset(**cfg)


def test_empty_captions_are_skipped(write):
    items = [{'image': '0.png', 'caption': ['?!', 'a cat']}, {'image': '1.png', 'caption': '.'}]
    cfg = write(items)
    dataset = AlbefJsonDataset(captions='each', **cfg)
    assert [summary(sample)[2] for sample in dataset] == ['a cat']


def test_a_caption_that_ends_with_half_a_character_can_be_read(write):
    dataset = AlbefJsonDataset(**write([{'image': '0.png', 'caption': 'a smile \ud83d'}]))
    assert summary(dataset[0])[2] == 'a smile'


def test_a_git_lfs_pointer_is_recognised(write, tmp_path):
    cfg = write([])
    (tmp_path / 'list.json').write_text('version https://git-lfs.github.com/spec/v1\n')
    for reader in (AlbefJsonDataset, CocoCaptionDataset):
        with pytest.raises(ValueError, match=r'list\.json .*it is a Git LFS pointer'):
            reader(**cfg)


class FirstCaptions(AlbefJsonDataset):
    """A reader of a plug-in that forgets to say that ``most`` changes what it reads."""

    def __init__(self, ann_file, most, **others):
        self.most, self.read = most, lambda captions: captions[: self.most]
        super().__init__(ann_file, **others)

    def read_entries(self, file):
        for entry in super().read_entries(file):
            yield entry._replace(captions=self.read(entry.captions))


def test_a_reader_with_another_argument_gets_another_index(write):
    """The one of before would have been read without a word."""
    config = write([{'image': '0.png', 'caption': ['a', 'b', 'c']}])
    for most in (1, 3, 2, 3):
        (sample,) = FirstCaptions(most=most, test_mode=True, **config)
        assert len(sample['data_samples'].text) == most


class Yielding(AlbefJsonDataset):
    """A reader of a plug-in that yields what it is told."""

    def __init__(self, entry, **others):
        self.entry = entry
        super().__init__(**others)

    def read_entries(self, file):
        yield self.entry


@pytest.mark.parametrize(
    ('entry', 'message'),
    [
        (
            ('0.png', ['a'], None),
            r'read_entries yields tuple, expected Entry\(image, captions',
        ),
        (Entry('0.png', ['a'], '7'), r"the id of 0\.png is '7', expected an integer in 0"),
        (Entry('0.png', ['a'], 7.0), r'the id of 0\.png is 7\.0, expected an integer in 0'),
    ],
)
def test_what_no_index_can_hold_is_named(write, entry, message):
    with pytest.raises(ValueError, match=rf'list\.json .*by Yielding after 0 images.*{message}'):
        Yielding(entry, **write([GOOD]))


READER = """
from xmodal.datasets import CaptionDataset, Entry

class OwnDataset(CaptionDataset):
    def read_entries(self, file):
        yield Entry('0.png', {captions})
"""


def test_a_reader_of_a_plug_in_that_has_changed_gets_a_new_index(write, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    config, found = write([GOOD]), []
    for captions in ("['before']", "['after the change']", "['before']", "file['caption']"):
        (tmp_path / 'own_reader.py').write_text(READER.format(captions=captions))
        sys.modules.pop('own_reader', None)
        importlib.invalidate_caches()
        module = importlib.import_module('own_reader')
        if 'file' in captions:
            with pytest.raises(ValueError, match='by OwnDataset .*Expected a file that its read_e'):
                module.OwnDataset(**config)
        else:
            found.append(summary(module.OwnDataset(**config)[0])[2])
    sys.modules.pop('own_reader')
    assert found == ['before', 'after the change', 'before']
    assert len(list(tmp_path.glob('*.xmodal_index'))) == 2


def test_the_index_of_a_folder_that_cannot_be_written_to_is_in_the_cache(
    write, tmp_path, monkeypatch
):
    monkeypatch.setenv('XMODAL_HOME', str(tmp_path / 'cache'))
    monkeypatch.setattr(os, 'access', lambda path, mode: False)
    assert len(AlbefJsonDataset(**write([GOOD]))) == 1
    assert not list(tmp_path.glob('*.xmodal_index'))
    assert len(list(tmp_path.glob('cache/*/*.xmodal_index'))) == 1


def test_the_lock_of_an_index_can_be_taken_by_another_user(write, tmp_path):
    AlbefJsonDataset(**write([GOOD]))
    assert (tmp_path / '.xmodal_index.lock').stat().st_mode & 0o777 == 0o666


def test_a_changed_file_gets_a_new_index(write):
    cfg = write([{'image': '0.png', 'caption': 'old'}])
    assert summary(AlbefJsonDataset(**cfg)[0])[2] == 'old'
    cfg = write([{'image': '0.png', 'caption': 'newer'}])
    assert summary(AlbefJsonDataset(**cfg)[0])[2] == 'newer'


@pytest.mark.parametrize(
    'items, message',
    [
        ([{'img': '0.png', 'caption': 'a'}], "key 'image' is missing"),
        ([{'image': '0.png', 'caption': 7}], 'after 0 images'),
        (
            [GOOD, {'image': '0.png', 'caption': {'a': 1}}],
            "after 1 images: caption is {'a': 1}",
        ),
        ([GOOD, {'image': '0.png', 'caption': ['a', None]}], 'after 1 images: caption is .*None'),
        ([GOOD, {'image': 5, 'caption': 'a'}], 'after 1 images: image is 5'),
        ([GOOD, {'image': None, 'caption': 'a'}], 'after 1 images: image is None'),
        ([GOOD, {'image': '', 'caption': 'a'}], "after 1 images: image is ''"),
        ([GOOD | {'image_id': 2**70}], f'image_id is {2**70}, expected a whole number'),
        ([], 'no image with a non-empty caption'),
    ],
)
def test_a_file_with_another_layout_is_an_error_that_names_it(write, items, message):
    with pytest.raises(ValueError, match=rf'(?s)(list\.json.*{message}|{message}.*list\.json)'):
        AlbefJsonDataset(**write(items))


def test_errors_for_missing_files_and_images_name_their_paths(write, tiny_world):
    with pytest.raises(FileNotFoundError, match=r'none\.json does not exist .*docs/data\.md'):
        AlbefJsonDataset(ann_file='none.json')
    with pytest.raises(
        FileNotFoundError, match=r'1 of 1 checked images .*away/9\.png .*list\.json'
    ):
        AlbefJsonDataset(**write([{'image': 'away/9.png', 'caption': 'a'}]))
    with pytest.raises(FileNotFoundError, match=r'absolute paths.*xmodal albef-paths'):
        AlbefJsonDataset(**write([{'image': '/export/home/coco/9.png', 'caption': 'a'}]))
    with pytest.raises(ValueError, match=r"no split \['dev'\].*test"):
        KarpathyDataset('karpathy/dataset_shapes.json', split='dev', data_root=str(tiny_world))


def test_a_test_needs_all_images_and_training_needs_some(write, tmp_path):
    for index in range(100):
        (tmp_path / f'{index}.jpg').touch()
    cfg = write([{'image': f'{index}.jpg', 'caption': 'a'} for index in range(100)])
    assert len(AlbefJsonDataset(test_mode=True, **cfg)) == 100
    for index in (50, 51):
        (tmp_path / f'{index}.jpg').unlink()
    assert len(AlbefJsonDataset(**cfg)) == 100
    with pytest.raises(
        FileNotFoundError, match=r'2 of 100 checked images .*50\.jpg \(.*list\.json\)'
    ):
        AlbefJsonDataset(test_mode=True, **cfg)


def test_an_unknown_key_of_data_prefix_is_an_error(tiny_world):
    with pytest.raises(
        ValueError, match=r"data_prefix has the keys \['img'\], expected only 'image'"
    ):
        AlbefJsonDataset('albef/train.json', str(tiny_world), dict(img='images'), PIPELINE)


def test_a_broken_image_is_replaced_in_training_and_an_error_in_test_mode(write, tmp_path):
    items = [{'image': f'{n}.png', 'caption': f'number {n}'} for n in range(4)]
    (tmp_path / '2.png').write_bytes(b'no image')
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
    return [summary(s) for s in samples], torch.stack([s['inputs'] for s in samples])


def test_random_choices_do_not_depend_on_the_process(tiny_world):
    cfg = dict(data_root=str(tiny_world), ann_file='albef/train.json')
    torch.manual_seed(5)
    summaries, images = load_all(cfg, 0)
    torch.manual_seed(6)
    worker_summaries, worker_images = load_all(cfg, 2)
    assert summaries == worker_summaries and torch.equal(images, worker_images)


def test_reading_does_not_change_the_global_generators(tiny_world):
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
        sampler.skip(skip, 1)
        orders.append(list(sampler))
    return orders


def test_ranks_split_an_epoch_and_skip_samples_that_were_seen(monkeypatch):
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
        ('\U0001f600 complete', '\U0001f600 complete'),
        (' '.join(map(str, range(40))), ' '.join(map(str, range(30)))),
    ],
)
def test_captions_are_cleaned_by_albefs_rules(text, expected):
    assert clean_caption(text) == expected


def test_an_image_outside_of_data_root_is_refused(write, tmp_path):
    (tmp_path / 'sub').mkdir()
    cfg = write([{'image': 'sub/../0.png', 'caption': 'inside'}])
    assert AlbefJsonDataset(**cfg)[0]['data_samples'].text == 'inside'
    cfg = write([{'image': '../0.png', 'caption': 'outside'}], 'outside.json')
    with pytest.raises(BrokenImageError, match=r'\.\./0\.png leaves data_root.*set dataset'):
        AlbefJsonDataset(**cfg)


def test_absolute_paths_are_logged_once(write, tmp_path, logged):
    items = [{'image': str(tmp_path / f'{n}.png'), 'caption': 'a'} for n in range(4)]
    dataset = AlbefJsonDataset(**write(items))
    assert [len(dataset[n]['inputs']) for n in range(4)] == [3] * 4
    assert len([line for line in logged if 'absolute paths' in line]) == 1


@pytest.mark.parametrize('name', ['null\0byte.png', 'half \ud83d.png'], ids=ascii)
def test_a_path_of_no_file_costs_its_image_alone(write, name):
    names = ['0.png', '1.png', name, '3.png']
    dataset = AlbefJsonDataset(**write([{'image': n, 'caption': 'a'} for n in names]))
    sample = dataset[2]['data_samples']
    assert 'no path of a file' in sample.metainfo['skipped'][0]
    assert os.path.basename(sample.image_path) in {'0.png', '1.png', '3.png'}


@pytest.mark.parametrize('rest', [', ', '[]', '{"image": "1.png"}', '] ]'])
def test_text_after_a_list_is_an_error(write, tmp_path, rest):
    cfg = write([GOOD])
    with open(tmp_path / 'list.json', 'a') as file:
        file.write(' \n' + rest)
    with pytest.raises(ValueError, match=r'list\.json.*follows the list'):
        AlbefJsonDataset(**cfg)


def test_lists_in_lists_thousands_deep_are_an_error(write, tmp_path):
    cfg = write([GOOD])
    (tmp_path / 'list.json').write_text('[' * 100_000)
    with pytest.raises(ValueError, match=r'list\.json cannot be read'):
        AlbefJsonDataset(**cfg)


@pytest.mark.parametrize('name', ['images.bytes', 'captions.npy', 'first_caption.npy'])
@pytest.mark.parametrize('damage', ['cut', 'empty', 'gone', 'other'])
def test_a_damaged_index_is_built_anew(write, tmp_path, name, damage, logged):
    cfg = write([{'image': f'{n}.png', 'caption': f'number {n}'} for n in range(4)])
    expected = [summary(sample) for sample in AlbefJsonDataset(**cfg)]
    (file,) = tmp_path.glob(f'*.xmodal_index/{name}')
    content = file.read_bytes()
    file.write_bytes({'cut': content[:-3], 'other': b'x' * 40}.get(damage, b''))
    if damage == 'gone':
        file.unlink()
    assert [summary(sample) for sample in AlbefJsonDataset(**cfg)] == expected
    AlbefJsonDataset(**cfg)
    assert len([line for line in logged if 'is damaged' in line]) == 1
