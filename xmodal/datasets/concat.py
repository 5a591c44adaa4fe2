"""Training on several datasets as one."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from torch.utils.data import Dataset

from xmodal.datasets.base import unpack_index
from xmodal.datasets.seeding import SeededDataset, derive_seed, set_run_seed
from xmodal.registry import DATASETS


@DATASETS.register_module()
class WeightedConcatDataset(SeededDataset, Dataset):
    """Concatenates training datasets, each with a weight.

    Unlike MMEngine's ``ConcatDataset`` it passes on the epoch, from which the random choices of a
    sample follow.

    Args:
        datasets: configs of the datasets.
        weights: how often an epoch shows the samples of each dataset: 1 shows each once; 0.25 shows
            a quarter of them, a different quarter in each of four epochs. None for 1 everywhere.
        seed: seed of the order in which the parts of a dataset take turns; None for that of the
            run.

    Raises:
        ValueError: when there is no dataset, or not one weight above 0 for each.
    """

    def __init__(
        self,
        datasets: Sequence[dict],
        weights: Sequence[float] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        weights = [1] * len(datasets) if weights is None else weights
        if not datasets:
            raise ValueError('dataset.datasets=[], expected at least one')
        if len(weights) != len(datasets) or min(weights) <= 0:
            raise ValueError(
                f'dataset.weights={list(weights)} for {len(datasets)} datasets: expected a number '
                'above 0 for each'
            )
        self.datasets = [DATASETS.build(config) for config in datasets]
        self._epoch_sizes = [
            max(1, round(weight * len(dataset)))
            for dataset, weight in zip(self.datasets, weights, strict=True)
        ]
        self._ends = list(accumulate(self._epoch_sizes))
        self._orders = self._draw_orders()

    def _draw_orders(self) -> list[np.ndarray | None]:
        """The order of each dataset, of which epochs show one part after the other."""
        return [
            None
            if size == len(dataset)
            else np.random.default_rng(self.seed).permutation(len(dataset))
            for dataset, size in zip(self.datasets, self._epoch_sizes, strict=True)
        ]

    def set_run_seed(self, seed: int) -> None:
        """Takes the seed of the run, also for the datasets, unless they have one of their own."""
        super().set_run_seed(seed)
        for dataset in self.datasets:
            set_run_seed(dataset, seed)
        self._orders = self._draw_orders()

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int | tuple[int, int]) -> dict:
        """A sample, by its index or by index and epoch.

        Raises:
            IndexError: when the index is out of range.
        """
        index, epoch = unpack_index(index, len(self))
        dataset_index = bisect_right(self._ends, index)
        epoch_size = self._epoch_sizes[dataset_index]
        index -= self._ends[dataset_index] - epoch_size
        if (order := self._orders[dataset_index]) is not None:
            # The number of the pass, since an epoch may have several: else their crops and captions
            # would be the same.
            epoch, place = divmod(index + epoch * epoch_size, len(order))
            index = int(order[place])
        sample = self.datasets[dataset_index][index, epoch]
        # Each data set numbers its images from 0, and those of one id are never negatives.
        data_sample = sample['data_samples']
        data_sample.image_id = derive_seed(data_sample.image_path)
        return sample
