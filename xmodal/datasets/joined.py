"""Several data sets trained on as one."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from torch.utils.data import Dataset

from xmodal.registry import DATASETS


@DATASETS.register_module()
class JoinedDataset(Dataset):
    """The samples of several training sets, one set after another.

    Unlike MMEngine's ``ConcatDataset`` it hands on the epoch, from which the random choices of a
    sample follow.

    Args:
        datasets: configs of the sets.
    """

    def __init__(self, datasets: Sequence[dict]) -> None:
        self.datasets = [DATASETS.build(config) for config in datasets]
        self._ends = list(accumulate(len(dataset) for dataset in self.datasets))

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
        dataset = self.datasets[place]
        return dataset[index - self._ends[place] + len(dataset), epoch]
