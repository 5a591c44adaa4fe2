"""Pre-training on several processes of this machine, as a benchmark takes it."""

import tempfile
import time
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.model import MMDistributedDataParallel
from torch import nn

from xmodal.benchmark.memory import memory_in_use
from xmodal.benchmark.pretraining import PretrainingStep
from xmodal.benchmark.traffic import Traffic
from xmodal.benchmark.workers import Worker
from xmodal.engine.sharding import ShardedModel


class Rank(PretrainingStep):
    """The step of one of several processes; of one alone, a step without communication.

    On CPUs they communicate through gloo and have a thread each, on GPUs through NCCL.

    Args:
        rank: number of the process.
        processes: how many there are.
        meeting: a file that does not exist, by which they find each other.
        units: classes that FSDP shards; None for DDP.
        config: file of the config.
        batch_size: pairs of a step of this process.
    """

    def __init__(
        self,
        rank: int,
        processes: int,
        meeting: str,
        units: list[str] | None,
        config: str,
        batch_size: int,
    ) -> None:
        self.processes, self.units = processes, units
        on_gpu = torch.cuda.is_available()
        if on_gpu:
            torch.cuda.set_device(rank)
        else:
            torch.set_num_threads(1)
        if processes > 1:
            torch.distributed.init_process_group(
                'nccl' if on_gpu else 'gloo',
                init_method=f'file://{meeting}',
                rank=rank,
                world_size=processes,
            )
        self.before = memory_in_use()
        super().__init__(config, None, batch_size, words=None, amp=False)

    def distribute(self, settings: Config) -> nn.Module:
        """Shards or wraps the model as the runner does."""
        if self.processes == 1:
            return self.model
        if self.units:
            return ShardedModel(self.model, self.units).model
        return MMDistributedDataParallel(
            self.model,
            device_ids=[torch.cuda.current_device()] if torch.cuda.is_available() else None,
            broadcast_buffers=False,
            find_unused_parameters=settings.get('find_unused_parameters', False),
        )

    def times(self) -> tuple[float, float]:
        """Takes a step; returns its seconds and its CPU seconds."""
        start = time.process_time()
        return self.seconds(), time.process_time() - start

    def sent(self) -> dict[str, float]:
        """Takes a step; returns the bytes that it sends, see :class:`Traffic`."""
        with Traffic(self.processes) as traffic:
            self()
        return dict(traffic.sent)

    def rest_and_peak(self) -> tuple[float, float]:
        """Takes two steps; returns the GiB of the training before and at the peak of a step."""
        peak = self.memory()
        rest = (memory_in_use() - self.before) / 2**10
        return rest, rest + peak


class Ranks:
    """The processes of a training, whose methods are called in all at once.

    Args:
        processes: how many.
        *args: of :class:`Rank`, from ``units`` on.
    """

    def __init__(self, processes: int, *args: object) -> None:
        self._folder = tempfile.TemporaryDirectory()
        meeting = str(Path(self._folder.name, 'meeting'))
        ranks = range(processes)
        self._workers = [Worker(Rank, rank, processes, meeting, *args) for rank in ranks]

    def call(self, method: str) -> list:
        """Calls a method without arguments, and waits for the results of all."""
        for worker in self._workers:
            worker.begin(method)
        return [worker.result() for worker in self._workers]

    def close(self) -> None:
        """Ends the processes."""
        for worker in self._workers:
            worker.close()
        self._folder.cleanup()
