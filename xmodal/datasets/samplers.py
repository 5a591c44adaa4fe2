"""The training sampler."""

from collections.abc import Iterator, Sized

import torch
from mmengine.dist import get_dist_info, sync_random_seed
from torch.utils.data import Sampler

from xmodal.datasets.seeding import derive_seed
from xmodal.registry import DATA_SAMPLERS


@DATA_SAMPLERS.register_module()
class EpochSampler(Sampler):
    """Shuffled indices together with their epoch, distributed over the ranks.

    It yields ``(index, epoch)``, so that a dataset knows which augmentation to sample, even in a
    worker that lives through all epochs. The last samples of an epoch that do not fill all ranks
    are dropped.

    Args:
        dataset: the dataset to sample from.
        seed: seed of the order; None uses one that all ranks share.

    Raises:
        ValueError: when there are fewer samples than ranks.
    """

    def __init__(self, dataset: Sized, seed: int | None = None) -> None:
        self.rank, self.world_size = get_dist_info()
        if len(dataset) < self.world_size:
            raise ValueError(
                f'the dataset has {len(dataset)} sample(s) for {self.world_size} processes: use '
                'fewer processes, or check its ann_file'
            )
        self.dataset = dataset
        self.seed = sync_random_seed() if seed is None else seed
        self.epoch = self.skipped = 0

    def __len__(self) -> int:
        """Samples of this rank in a whole epoch."""
        return len(self.dataset) // self.world_size

    def __iter__(self) -> Iterator[tuple[int, int]]:
        generator = torch.Generator().manual_seed(derive_seed(self.seed, self.epoch))
        order = torch.randperm(len(self.dataset), generator=generator)
        # The copy frees the indices of the other ranks. A list of tuples never exists: for five
        # million samples it would take half a gigabyte on eight ranks. A list of tensors, which
        # iterating over a tensor makes, took four.
        indices = order[self.rank : len(self) * self.world_size : self.world_size].clone()
        skipped, self.skipped, epoch = self.skipped, 0, self.epoch
        return ((int(index), epoch) for index in indices[skipped:].numpy())

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next iteration."""
        self.epoch = epoch

    def skip(self, batches: int, batch_size: int) -> None:
        """Skips this rank's first ``batches`` in the next iteration, after a resume."""
        self.skipped = batches * batch_size
