"""Training on several datasets as one."""

import numpy as np
import pytest
from torch.utils.data import Dataset

from xmodal.datasets import WeightedConcatDataset
from xmodal.registry import DATASETS
from xmodal.structures import DataSample

SPLITS = ('one', 'two')


@DATASETS.register_module(force=True)
class Lettered(Dataset):
    """Returns the letter, the index and the epoch."""

    def __init__(self, letter, count):
        self.letter, self.count = letter, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        index, epoch = index
        path = f'{self.letter}{index}'
        sample = DataSample(metainfo={'image_path': path, 'epoch': epoch})
        sample.set_field(index, 'image_id')
        return {'data_samples': sample}


def name(sample):
    sample = sample['data_samples']
    return f'{sample.image_path}.{sample.epoch}'


def concatenated():
    parts = (('a', 2), ('b', 1), ('c', 3))
    return WeightedConcatDataset(
        [dict(type='Lettered', letter=letter, count=count) for letter, count in parts]
    )


def test_the_datasets_follow_each_other():
    assert [name(sample) for sample in concatenated()] == [
        'a0.0',
        'a1.0',
        'b0.0',
        'c0.0',
        'c1.0',
        'c2.0',
    ]
    assert len(concatenated()) == 6


def test_the_epoch_is_passed_on():
    assert name(concatenated()[2, 7]) == 'b0.7'


def test_images_of_different_data_sets_have_different_ids():
    parts = [dict(type='Lettered', letter=letter, count=2) for letter in 'aba']
    ids = [sample['data_samples'].image_id for sample in WeightedConcatDataset(parts)]
    assert len(set(ids)) == 4 and ids[:2] == ids[4:]


def test_images_of_precomputed_features_have_different_ids(tmp_path):
    for split in SPLITS:
        features = np.random.default_rng(0).random((3, 4, 5), np.float32)
        np.save(tmp_path / f'{split}_ims.npy', features)
        (tmp_path / f'{split}_caps.txt').write_text('a cat\n' * 6)
    splits = [dict(type='PrecompDataset', split=name, data_root=str(tmp_path)) for name in SPLITS]
    ids = [sample['data_samples'].image_id for sample in WeightedConcatDataset(splits)]
    assert len(set(ids)) == 6
    assert ids[::2] == ids[1::2]  # both captions of an image


@pytest.mark.parametrize('index', [-1, 6])
def test_an_index_out_of_range_is_an_error(index):
    with pytest.raises(IndexError, match='of a dataset with 6'):
        concatenated()[index]


def weighted(*weights):
    parts = (('a', 10), ('b', 4))
    return WeightedConcatDataset(
        [dict(type='Lettered', letter=letter, count=count) for letter, count in parts], weights
    )


def shown_samples(dataset, epoch):
    return sorted(name(dataset[index, epoch]).partition('.')[0] for index in range(len(dataset)))


def test_a_weight_says_how_often_an_epoch_shows_the_samples_of_a_dataset():
    assert len(weighted(0.5, 1)) == 9 and len(weighted(1, 2.5)) == 20
    twice = shown_samples(weighted(1, 2), epoch=3)
    assert twice == sorted([f'a{n}' for n in range(10)] + 2 * [f'b{n}' for n in range(4)])


def test_a_sample_is_never_shown_twice_with_one_epoch():
    dataset = weighted(1, 2.5)  # else its crop and its caption would be the same both times
    shown = [name(dataset[index, epoch]) for epoch in range(4) for index in range(10, 20)]
    assert sorted(shown) == sorted(f'b{n}.{turn}' for n in range(4) for turn in range(10))


def test_the_parts_of_a_dataset_take_turns_over_the_epochs():
    dataset = weighted(0.3, 1)
    shown = [
        {name for name in shown_samples(dataset, epoch) if name[0] == 'a'} for epoch in range(10)
    ]
    assert all(len(names) == 3 for names in shown)
    assert len(set.union(*shown[:3])) == 9  # no sample repeats before all were shown
    counts = [sum(f'a{n}' in names for names in shown) for n in range(10)]
    assert counts == [3] * 10
    assert shown_samples(dataset, 5) == shown_samples(weighted(0.3, 1), 5)


@pytest.mark.parametrize('weights', [(1,), (1, 0), (1, 1, 1)])
def test_invalid_weights_are_an_error(weights):
    with pytest.raises(ValueError, match='for 2 datasets: expected a number above 0 for each'):
        weighted(*weights)


def test_a_seed_of_the_run_reaches_the_order_and_the_datasets(tmp_path):
    (tmp_path / 'captions.json').write_text('[{"image": "a.jpg", "caption": "a cat"}]')
    captions = dict(type='AlbefJsonDataset', ann_file='captions.json', data_root=str(tmp_path))
    (tmp_path / 'a.jpg').touch()
    parts = [dict(type='Lettered', letter='a', count=10), captions, dict(captions, seed=5)]
    dataset = WeightedConcatDataset(parts, [0.3, 1, 1])
    assert shown_a(dataset) == shown_a(WeightedConcatDataset(parts, [0.3, 1, 1], seed=0))
    dataset.set_run_seed(3)
    assert shown_a(dataset) == shown_a(WeightedConcatDataset(parts, [0.3, 1, 1], seed=3))
    assert [part.seed for part in dataset.datasets[1:]] == [3, 5]
    own = WeightedConcatDataset(parts, [0.3, 1, 1], seed=0)
    own.set_run_seed(3)
    assert shown_a(own) != shown_a(dataset)


def shown_a(dataset):
    """The samples of the first dataset that an epoch shows."""
    return [name(dataset[index, 0]) for index in range(3)]
