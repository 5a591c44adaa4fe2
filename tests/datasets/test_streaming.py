"""Streaming of tar shards."""

import io
import tarfile
from collections import Counter

import cv2
import numpy as np
import pytest
from torch.utils.data import DataLoader

from xmodal.datasets.streaming import WebDatasetShards

PIPELINE = [dict(type='LoadImage'), dict(type='PackImageText')]


@pytest.fixture(scope='module')
def shards(tmp_path_factory):
    """Four shards of five pairs."""
    folder = tmp_path_factory.mktemp('shards')
    picture = cv2.imencode('.jpg', np.zeros((8, 8, 3), np.uint8))[1].tobytes()
    for shard in range(4):
        with tarfile.open(folder / f'{shard:05}.tar', 'w') as tar:
            for number in range(5):
                for suffix, data in (('jpg', picture), ('txt', f'pair {shard} {number}'.encode())):
                    member = tarfile.TarInfo(f'{shard}{number:03}.{suffix}')
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    return folder


def make(shards, monkeypatch, rank=0, ranks=1, pattern='{00000..00003}.tar'):
    monkeypatch.setattr('xmodal.datasets.streaming.get_dist_info', lambda: (rank, ranks))
    return WebDatasetShards(pattern, 20, str(shards), PIPELINE, shuffle_buffer=3, seed=1)


def epoch_of(dataset, epoch, count, skip=0, workers=0):
    dataset.set_epoch(epoch)
    dataset.skip(skip)
    loader = iter(DataLoader(dataset, 1, num_workers=workers, collate_fn=list))
    return [next(loader)[0]['data_samples'].text for _ in range(count)]


@pytest.mark.parametrize('ranks, workers', [(1, 0), (2, 0), (2, 2)])
def test_an_epoch_shows_every_pair_once_over_ranks_and_workers(shards, monkeypatch, ranks, workers):
    seen = []
    for rank in range(ranks):
        seen += epoch_of(make(shards, monkeypatch, rank, ranks), 0, 20 // ranks, workers=workers)
    assert Counter(seen) == Counter(f'pair {s} {n}' for s in range(4) for n in range(5))


def test_epochs_differ_repeat_and_resume(shards, monkeypatch):
    dataset = make(shards, monkeypatch)
    first = epoch_of(dataset, 0, 20)
    assert epoch_of(dataset, 1, 20) != first
    assert epoch_of(dataset, 0, 20) == first
    assert epoch_of(dataset, 0, 12, skip=8) == first[8:]


def test_missing_shards_and_too_few_of_them_are_errors(shards, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r'00004\.tar is not there .*1 missing'):
        make(shards, monkeypatch, pattern='{00000..00004}.tar')
    with pytest.raises(ValueError, match=r'4 shard\(s\) are too few for 8 rank\(s\) x 1 worker'):
        next(iter(make(shards, monkeypatch, rank=7, ranks=8)))
