"""Several data sets trained on as one."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from torch.utils.data import Dataset

from xmodal.registry import DATASETS


@DATASETS.register_module()
class WeightedConcatDataset(Dataset):
    """The samples of several training sets, one set after another.

    Unlike MMEngine's ``ConcatDataset`` it hands on the epoch, from which the random choices of a
    sample follow.

    Args:
        datasets: configs of the sets.
        weights: how often an epoch shows the samples of each set: 1 once, 0.25 a quarter of them,
            another quarter in each of four epochs. None for 1 everywhere.
        seed: of the order in which parts of a set take turns.

    Raises:
        ValueError: when there is not a weight above 0 for each set.
    """

    def __init__(
        self, datasets: Sequence[dict], weights: Sequence[float] | None = None, seed: int = 0
    ) -> None:
        weights = [1] * len(datasets) if weights is None else weights
        if len(weights) != len(datasets) or min(weights) <= 0:
            raise ValueError(
                f'dataset.weights={list(weights)} for {len(datasets)} sets: expected a number '
                'above 0 for each'
            )
        self.datasets = [DATASETS.build(config) for config in datasets]
        self._shown = [
            max(1, round(weight * len(dataset)))
            for dataset, weight in zip(self.datasets, weights, strict=True)
        ]
        self._orders = [
            None if shown == len(dataset) else np.random.default_rng(seed).permutation(len(dataset))
            for dataset, shown in zip(self.datasets, self._shown, strict=True)
        ]
        self._ends = list(accumulate(self._shown))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, draw: int | tuple[int, int]) -> dict:
        """A sample; ``draw`` is its index, or index and epoch.

        Raises:
            IndexError: past the end.
        """
        index, epoch = draw if isinstance(draw, tuple) else (draw, 0)
        if not 0 <= index < len(self):
            raise IndexError(f'sample {index} of a data set of {len(self)}')
        place = bisect_right(self._ends, index)
        own = index - self._ends[place] + self._shown[place]
        if (order := self._orders[place]) is not None:
            own = int(order[(own + epoch * self._shown[place]) % len(order)])
        return self.datasets[place][own, epoch]
