"""Streaming of tar shards."""

import io
import tarfile
from collections import Counter

import cv2
import numpy as np
import pytest
from detected import random_image, write_store
from torch.utils.data import DataLoader

from xmodal.datasets.streaming import WebDatasetShards
from xmodal.datasets.transforms import BrokenImageError

PIPELINE = [dict(type='LoadImage'), dict(type='PackImageText')]


IMAGE = cv2.imencode('.jpg', np.zeros((8, 8, 3), np.uint8))[1].tobytes()


def write_shard(file, pairs):
    """Writes pairs, each a dict from suffix to content."""
    file.parent.mkdir(exist_ok=True)
    with tarfile.open(file, 'w') as tar:
        for index, pair in enumerate(pairs):
            for suffix, data in pair.items():
                member = tarfile.TarInfo(f'{file.stem}{index:03}.{suffix}')
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


@pytest.fixture(scope='module')
def shards(tmp_path_factory):
    """Four shards with five pairs each."""
    folder = tmp_path_factory.mktemp('shards')
    for shard in range(4):
        texts = (f'pair {shard} {index}'.encode() for index in range(5))
        suffix = 'jfif' if shard == 3 else 'jpg'
        write_shard(folder / f'{shard:05}.tar', [{suffix: IMAGE, 'txt': text} for text in texts])
    return folder


def make(shards, monkeypatch, rank=0, ranks=1, pattern='{00000..00003}.tar'):
    monkeypatch.setattr('xmodal.datasets.streaming.get_dist_info', lambda: (rank, ranks))
    return WebDatasetShards(pattern, 20, str(shards), PIPELINE, shuffle_buffer=3, seed=1)


def epoch_of(dataset, epoch, count, skip=0, workers=0, batch=1):
    """The texts of some batches, in order."""
    dataset.set_epoch(epoch)
    dataset.skip(skip, batch)
    loader = iter(DataLoader(dataset, batch, num_workers=workers, collate_fn=list))
    return [sample['data_samples'].text for _ in range(count) for sample in next(loader)]


@pytest.mark.parametrize('ranks, workers', [(1, 0), (2, 0), (2, 2)])
def test_an_epoch_shows_every_pair_once_over_ranks_and_workers(shards, monkeypatch, ranks, workers):
    seen = []
    for rank in range(ranks):
        seen += epoch_of(make(shards, monkeypatch, rank, ranks), 0, 20 // ranks, workers=workers)
    assert Counter(seen) == Counter(f'pair {s} {n}' for s in range(4) for n in range(5))


def test_epochs_differ_and_can_be_repeated_and_resumed(shards, monkeypatch):
    dataset = make(shards, monkeypatch)
    first = epoch_of(dataset, 0, 20)
    assert epoch_of(dataset, 1, 20) != first
    assert epoch_of(dataset, 0, 20) == first
    assert epoch_of(dataset, 0, 12, skip=8) == first[8:]


@pytest.mark.parametrize('seen', [1, 2, 5])
def test_workers_go_on_where_those_of_the_interrupted_run_were(shards, monkeypatch, seen):
    dataset = make(shards, monkeypatch)
    whole = epoch_of(dataset, 0, 9, workers=2, batch=2)
    assert epoch_of(dataset, 0, 9 - seen, skip=seen, workers=2, batch=2) == whole[2 * seen :]


def test_a_pair_that_an_epoch_shows_again_is_not_cropped_alike(tmp_path):
    image = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    jpeg = cv2.imencode('.jpg', image)[1].tobytes()
    write_shard(tmp_path / '0.tar', [{'jpg': jpeg, 'txt': b'a dog'}])
    pipeline = [PIPELINE[0], dict(type='AlbefAugment', size=32), PIPELINE[1]]
    stream = iter(WebDatasetShards('0.tar', 3, str(tmp_path), pipeline, seed=1))
    crops = {next(stream)['inputs'].numpy().tobytes() for _ in range(3)}
    assert len(crops) == 3


def test_the_key_of_a_pair_is_the_id_of_its_regions(tmp_path):
    pairs = [{'jpg': IMAGE, 'txt': text} for text in (b'pair 0', b'pair 1')]
    write_shard(tmp_path / 'shard.tar', pairs)
    images = [random_image(f'shard{n:03}', n + 1) for n in range(2)]
    store = write_store(tmp_path / 'store', [*images, random_image('shard', 9)])
    pipeline = [dict(type='LoadRegions', store=str(store)), dict(type='PackRegionText')]
    stream = iter(WebDatasetShards('shard.tar', 2, str(tmp_path), pipeline))
    samples = [next(stream) for _ in range(2)]
    found = {sample['data_samples'].text: len(sample['inputs'].features) for sample in samples}
    assert found == {'pair 0': 1, 'pair 1': 2}


def test_missing_shards_and_too_few_shards_are_errors(shards, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r'00004\.tar does not exist .*1 missing'):
        make(shards, monkeypatch, pattern='{00000..00004}.tar')
    with pytest.raises(ValueError, match=r'4 shard\(s\) are too few for 8 rank\(s\) x 1 worker'):
        next(iter(make(shards, monkeypatch, rank=7, ranks=8)))


def test_a_glob_finds_shards_in_folders(tmp_path, monkeypatch):
    for name in ('b/1.tar', 'a/1.tar', 'a/2.tar'):
        write_shard(tmp_path / name, [{'jpg': IMAGE, 'txt': name.encode()}])
    shards = make(tmp_path, monkeypatch, pattern='*/*.tar').shards
    assert shards == [str(tmp_path / name) for name in ('a/1.tar', 'a/2.tar', 'b/1.tar')]
    with pytest.raises(FileNotFoundError, match=r'\*/no\*\.tar does not exist'):
        make(tmp_path, monkeypatch, pattern='*/no*.tar')


def test_the_stream_ends_when_all_images_are_broken(tmp_path, monkeypatch):
    write_shard(tmp_path / '0.tar', [{'jpg': b'no image', 'txt': b'a dog'}] * 5)
    with pytest.raises(BrokenImageError, match=r'(?s)20 broken pairs in a row.*0\.tar/0004'):
        next(iter(make(tmp_path, monkeypatch, pattern='0.tar')))


def test_what_was_left_out_before_a_stop_is_neither_told_again_nor_in_a_row(tmp_path, monkeypatch):
    good, bad = {'jpg': IMAGE, 'txt': b'a dog'}, {'jpg': IMAGE, 'txt': b'\xff'}
    no_image = {'jpg': b'no image', 'txt': b'a dog'}
    write_shard(tmp_path / '0.tar', [good, *[bad] * 20, good, no_image, good, good])
    dataset = make(tmp_path, monkeypatch, pattern='0.tar')
    dataset.shuffle_buffer = 1
    stream = iter(dataset)
    whole = [next(stream)['data_samples'].skipped for _ in range(4)]
    assert sum(map(len, whole)) == 21
    dataset.skip(2, 1)
    stream = iter(dataset)
    resumed = [next(stream)['data_samples'].skipped for _ in range(2)]
    assert sum(map(len, resumed)) <= 1


@pytest.mark.parametrize('content', ['[1]', '{"caption": 5}', '{"caption": ["a"]}', 'null', '{'])
def test_a_pair_whose_json_has_another_layout_is_skipped_and_named(tmp_path, monkeypatch, content):
    good = {'jpg': IMAGE, 'json': b'{"caption": "A dog."}'}
    write_shard(tmp_path / '0.tar', [{'jpg': IMAGE, 'json': content.encode()}, good])
    stream = iter(make(tmp_path, monkeypatch, pattern='0.tar'))
    samples = [next(stream)['data_samples'] for _ in range(2)]
    assert [sample.text for sample in samples] == ['a dog', 'a dog']
    assert any('0.tar/0000.json' in note for sample in samples for note in sample.skipped)


def test_a_pattern_of_a_billion_shards_is_an_error_at_once(tmp_path):
    with pytest.raises(ValueError, match=r'stands for 1000000000 shards \(dataset\.shards\)'):
        WebDatasetShards('{0..999999999}.tar', num_samples=1, data_root=str(tmp_path))
