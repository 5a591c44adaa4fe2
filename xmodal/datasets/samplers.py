"""The training sampler."""

from collections.abc import Iterator, Sized

import torch
from mmengine.dist import get_dist_info, sync_random_seed
from torch.utils.data import Sampler

from xmodal.datasets.seeding import derive_seed
from xmodal.registry import DATA_SAMPLERS


@DATA_SAMPLERS.register_module()
class EpochSampler(Sampler):
    """Shuffled indices with the epoch they are drawn in, shared out over the ranks.

    It yields ``(index, epoch)``, so that a data set, also in a worker that lives through all
    epochs, knows which augmentation to draw. The last samples of an epoch that make no whole round
    over the ranks are left out.

    Args:
        dataset: what is sampled.
        seed: of the order; None takes one that all ranks share.
        shuffle: False keeps the order of the data set.

    Raises:
        ValueError: when there are fewer samples than ranks.
    """

    def __init__(self, dataset: Sized, seed: int | None = None, shuffle: bool = True) -> None:
        self.rank, self.world_size = get_dist_info()
        if len(dataset) < self.world_size:
            raise ValueError(
                f'the data set has {len(dataset)} sample(s) for {self.world_size} processes: use '
                'fewer processes, or check its ann_file'
            )
        self.dataset, self.shuffle = dataset, shuffle
        self.seed = sync_random_seed() if seed is None else seed
        self.epoch = self.skipped = 0

    def __len__(self) -> int:
        """Samples of this rank in a whole epoch."""
        return len(self.dataset) // self.world_size

    def __iter__(self) -> Iterator[tuple[int, int]]:
        order = torch.arange(len(self.dataset))
        if self.shuffle:
            generator = torch.Generator().manual_seed(derive_seed(self.seed, self.epoch))
            order = torch.randperm(len(self.dataset), generator=generator)
        # A copy lets go of the other ranks' indices, and a list of tuples never exists: at five
        # million samples it would take half a gigabyte on eight ranks. Nor does one of tensors,
        # which iterating over a tensor makes: that took four.
        own = order[self.rank : len(self) * self.world_size : self.world_size].clone()
        skipped, self.skipped, epoch = self.skipped, 0, self.epoch
        return ((int(index), epoch) for index in own[skipped:].numpy())

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next iteration."""
        self.epoch = epoch

    def skip(self, samples: int) -> None:
        """Leaves out this rank's first ``samples`` in the next iteration: they were seen."""
        self.skipped = samples
