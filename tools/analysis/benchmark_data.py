"""Times the data path of a config, or an index of millions of pairs.

    python tools/analysis/benchmark_data.py configs/acerpe/pretrain_shapes.py --train-steps 10
    python tools/analysis/benchmark_data.py --index 5100000

The first decodes, augments, batches and tokenises on one core, and takes turns with steps of the
config's model where asked to, so that a drift of the machine's speed hits both alike. The second
generates pairs (their pictures are never opened), builds the index, opens it again, and adds up the
memory that it takes in training processes whose workers read at random. Linux only.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from operator import itemgetter
from pathlib import Path

import cv2
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.optim import build_optim_wrapper
from rich.console import Console
from rich.table import Table
from torch.utils.data import DataLoader, IterableDataset
from tqdm import tqdm

from xmodal.datasets.albef_writer import write_albef_json
from xmodal.datasets.captions import AlbefJsonDataset
from xmodal.datasets.collate import stack_images
from xmodal.datasets.samplers import EpochSampler
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import ShowDefaults, read_config
from xmodal.registry import DATASETS, MODELS, register_all

WARM_UP = 2
LIST = 'pairs.json'
WORDS = 'two dogs and a man on the old wooden bench beside a red bicycle in front of shops'.split()


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('config', nargs='?', help='a pre-training config')
    parser.add_argument('--batches', type=int, default=20, help='batches timed, after a warm-up')
    parser.add_argument('--train-steps', type=int, default=0, help="the model's steps timed")
    parser.add_argument('--index', type=int, help='pairs of a generated index')
    parser.add_argument('--ranks', type=int, default=8, help='training processes')
    parser.add_argument('--workers', type=int, default=4, help='of each rank')
    parser.add_argument('--samples', type=int, default=10_000, help='that each rank reads')
    args = parser.parse_args()
    if (args.config is None) == (args.index is None):
        parser.error('give either a config or --index')
    return args


def timed(do: Callable, *args: object) -> tuple[float, object]:
    """Seconds that a call takes, and what it returns."""
    start = time.perf_counter()
    result = do(*args)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


class Step:
    """Training steps of a config's model, on its first or all of its heads.

    Attributes:
        heads: by name of a variant, the heads that take part: those of a run's first epoch, where
            some begin later, and all.
    """

    def __init__(self, config: Config) -> None:
        device = 'cuda' if torch.cuda.is_available() else 'cpu'
        self._model = MODELS.build(config.model).to(device).train()
        self._optim_wrapper = build_optim_wrapper(self._model, config.optim_wrapper)
        self.heads = {'step, all heads': frozenset(self._model.heads)}
        hooks = [hook for hook in config.custom_hooks if hook['type'] == 'DelayedHeadsHook']
        if later := {name for hook in hooks for name in hook['epochs']}:
            first = frozenset(self._model.heads) - later
            self.heads[f'step, first epochs ({", ".join(sorted(first))})'] = first

    def __call__(self, batch: dict, heads: frozenset[str]) -> None:
        self._model.active_heads = heads
        inputs = self._model.data_preprocessor(batch, training=True)
        with self._optim_wrapper.optim_context(self._model):
            losses = self._model(**inputs, mode='loss')
        self._optim_wrapper.update_params(self._model.parse_losses(losses)[0])


def time_config(args: argparse.Namespace) -> dict[str, float]:
    """Median seconds a batch of the parts of the data path, and of steps; ``size`` of a batch."""
    config = read_config(args.config)
    loader_config = config.train_dataloader
    dataset = DATASETS.build(loader_config.dataset)
    size = loader_config.get('global_batch_size') or loader_config.batch_size
    sampler = None if isinstance(dataset, IterableDataset) else EpochSampler(dataset, seed=0)
    loader = DataLoader(dataset, size, sampler=sampler, collate_fn=stack_images, drop_last=True)
    preprocessor = MODELS.build(config.model.data_preprocessor)
    step = Step(config) if args.train_steps else None
    threads = torch.get_num_threads()
    seconds: dict[str, list[float]] = {}
    batches = iter(loader)
    for turn in tqdm(range(min(WARM_UP + args.batches, len(loader))), 'batches'):
        torch.set_num_threads(1)
        found, batch = timed(next, batches)
        seconds.setdefault('decode, augment', []).append(found)
        found, _ = timed(preprocessor, batch)
        seconds.setdefault('tokenise, batch, normalise', []).append(found)
        if step and turn < WARM_UP + args.train_steps:
            torch.set_num_threads(threads)
            for name, heads in step.heads.items():
                seconds.setdefault(name, []).append(timed(step, batch, heads)[0])
    medians = {name: statistics.median(found[WARM_UP:]) for name, found in seconds.items()}
    return {**medians, 'size': size}


def print_times(config: str, found: dict[str, float]) -> None:
    """A table of the data path, and its share of a step."""
    size = found.pop('size')
    steps = {name: found.pop(name) for name in list(found) if name.startswith('step')}
    found['data path'] = sum(found.values())
    table = Table(title=f'{config}, batches of {size}')
    for heading in ('', 'ms a batch', 'samples/s per core'):
        table.add_column(heading, justify='right' if heading else 'left')
    for name, seconds in found.items():
        table.add_row(name, f'{1e3 * seconds:.1f}', f'{size / seconds:.0f}')
    for name, seconds in steps.items():
        table.add_row(name, f'{1e3 * seconds:.1f}', '')
        table.add_row('  data path / step', f'{found["data path"] / seconds:.1%}', '')
    Console(width=100).print(table)


def pairs(count: int) -> Iterator[dict]:
    """Records like those of web pairs: paths in folders of 10,000, captions of 5 to 14 words."""
    for number in range(count):
        words = WORDS[number % 17 :] + WORDS[: number % 17]
        image = f'cc3m/{number // 10_000:05}/{number:09}.jpg'
        yield {'image': image, 'caption': f'{" ".join(words[: 5 + number % 10])} {number}'}


def write_list(folder: Path, count: int) -> None:
    """A generated list, and the first of its pictures, which the data set looks for."""
    write_albef_json(folder / LIST, pairs(count), count)
    image = folder / 'cc3m/00000/000000000.jpg'
    image.parent.mkdir(parents=True)
    image.touch()


def open_list(folder: Path) -> AlbefJsonDataset:
    """The data set, without transforms."""
    return AlbefJsonDataset(LIST, str(folder), captions='each', pipeline=[itemgetter('text')])


def run_rank(
    folder: Path, rank: int, args: argparse.Namespace, pids: SimpleQueue, end: Event
) -> None:
    """A training process: reads with its workers, tells their ids, and stays until the end."""
    dataset = open_list(folder)
    sampler = EpochSampler(dataset, seed=0)
    sampler.rank, sampler.world_size = rank, args.ranks
    loader = DataLoader(
        dataset,
        64,
        sampler=sampler,
        num_workers=args.workers,
        persistent_workers=True,
        collate_fn=lambda _: os.getpid(),
    )
    batches = iter(loader)  # held, so that shuffled indices are too
    pids.put({os.getpid(), *islice(batches, args.samples // 64)})
    end.wait()


def used_memory(folder: Path, args: argparse.Namespace) -> int:
    """Bytes that all training processes and workers take, shared pages counted once."""
    context = get_context('fork')
    pids, end = context.SimpleQueue(), context.Event()
    ranks = [
        context.Process(target=run_rank, args=(folder, rank, args, pids, end))
        for rank in range(args.ranks)
    ]
    for process in ranks:
        process.start()
    found = set().union(*(pids.get() for _ in tqdm(ranks, 'ranks that have read')))
    total = sum(map(proportional_size, found))
    end.set()
    for process in ranks:
        process.join()
    if len(found) != args.ranks * (1 + args.workers):
        raise RuntimeError(f'only {len(found)} processes have read: raise --samples')
    return total


def proportional_size(pid: int) -> int:
    """Bytes of a process; a page that n processes share counts 1/n."""
    lines = Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith('Pss:')) << 10


def measure_index(args: argparse.Namespace, folder: Path) -> None:
    """Prints what an index costs."""
    few, many = folder / 'few', folder / 'many'
    # What the same processes take for as many reads of no more pairs is not the index's.
    write_list(few, args.ranks * args.samples)
    open_list(few)
    write_list(many, args.index)
    first, _ = timed(open_list, many)
    again, _ = timed(open_list, many)
    on_disk = sum(file.stat().st_size for file in many.glob('*.xmodal_index/*'))
    used = used_memory(many, args) - used_memory(few, args)
    table = Table(title=f'{args.index:,} pairs, {args.ranks} ranks x {args.workers} workers')
    for heading in ('', 'found'):
        table.add_column(heading, justify='right' if heading else 'left')
    table.add_row('annotation file', f'{(many / LIST).stat().st_size / 1e9:.2f} GB')
    table.add_row('index on disk', f'{on_disk / 1e9:.2f} GB')
    table.add_row('first build', f'{first:.1f} s')
    table.add_row('opened again', f'{again:.3f} s')
    read = args.samples * args.ranks
    table.add_row(f'memory of all processes after {read:,} reads', f'{used / 1e9:.2f} GB')
    Console(width=100).print(table)


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    MMLogger.get_instance('benchmark', log_level='ERROR')
    register_all()
    cv2.setNumThreads(0)
    if args.config:
        print_times(args.config, time_config(args))
    else:
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder:
            measure_index(args, Path(folder))


if __name__ == '__main__':
    run_or_explain(main)
