"""Several data sets as one."""

import pytest
from torch.utils.data import Dataset

from xmodal.datasets import JoinedDataset
from xmodal.registry import DATASETS


@DATASETS.register_module(force=True)
class Lettered(Dataset):
    """Says which letter, place and epoch was asked for."""

    def __init__(self, letter, count):
        self.letter, self.count = letter, count

    def __len__(self):
        return self.count

    def __getitem__(self, draw):
        index, epoch = draw
        return f'{self.letter}{index}.{epoch}'


def joined():
    parts = (('a', 2), ('b', 1), ('c', 3))
    return JoinedDataset(
        [dict(type='Lettered', letter=letter, count=count) for letter, count in parts]
    )


def test_the_sets_follow_each_other():
    assert list(joined()) == ['a0.0', 'a1.0', 'b0.0', 'c0.0', 'c1.0', 'c2.0']
    assert len(joined()) == 6


def test_the_epoch_is_handed_on():
    assert joined()[2, 7] == 'b0.7'


@pytest.mark.parametrize('index', [-1, 6])
def test_an_index_out_of_range_is_an_error(index):
    with pytest.raises(IndexError, match='of a data set of 6'):
        joined()[index]
