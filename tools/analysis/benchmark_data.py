"""Times the data loading of a config, or an index of millions of pairs.

    python tools/analysis/benchmark_data.py configs/acerpe/pretrain_shapes.py --train-steps 10
    python tools/analysis/benchmark_data.py --index 5100000

The first command decodes, augments, batches and tokenises on one core. With --train-steps it
alternates with training steps of the model, so that a drift of the machine's speed affects both
alike. The second command generates pairs (their images are never opened), builds the index, opens
it again, and sums its memory in training processes whose workers read at random. Linux only.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Iterator
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
from torch.utils.data import DataLoader, IterableDataset
from tqdm import tqdm

from xmodal.benchmark import (
    WARM_UP,
    default_device,
    make_parser,
    make_table,
    proportional_memory,
    timed,
)
from xmodal.datasets.albef_writer import write_albef_json
from xmodal.datasets.captions import AlbefJsonDataset
from xmodal.datasets.collate import stack_images
from xmodal.datasets.samplers import EpochSampler
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.memory import recompute_gelu
from xmodal.registry import DATASETS, MODELS, register_all

ANNOTATIONS = 'pairs.json'
WORDS = 'two dogs and a man on the old wooden bench beside a red bicycle in front of shops'.split()


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('config', nargs='?', help='a pre-training config')
    parser.add_argument(
        '--batches', type=at_least(1), default=20, help='batches that count, after a warm-up'
    )
    parser.add_argument(
        '--train-steps', type=at_least(0), default=0, help='training steps that count; 0: none'
    )
    parser.add_argument('--index', type=at_least(1), help='number of pairs of a generated index')
    parser.add_argument('--ranks', type=at_least(1), default=8, help='training processes')
    parser.add_argument(
        '--workers', type=at_least(0), default=4, help='worker processes of each rank'
    )
    parser.add_argument(
        '--samples', type=at_least(1), default=10_000, help='samples that each rank reads'
    )
    args = parser.parse_args()
    if (args.config is None) == (args.index is None):
        parser.error('give either a config or --index')
    return args


class Step:
    """Training steps of the model of a config.

    Attributes:
        heads: by name of a variant, its active heads: all heads, and those of the first epochs if
            some heads start later.
    """

    def __init__(self, config: Config) -> None:
        self._model = MODELS.build(config.model).to(default_device()).train()
        recompute_gelu(self._model)  # as the runner does
        self._optim_wrapper = build_optim_wrapper(self._model, config.optim_wrapper)
        self.heads = {'step, all heads': frozenset(self._model.heads)}
        hooks = [hook for hook in config.custom_hooks if hook['type'] == 'DelayedHeadsHook']
        if later := {name for hook in hooks for name in hook['epochs']}:
            first = frozenset(self._model.heads) - later
            self.heads[f'step, first epochs ({", ".join(sorted(first))})'] = first

    def __call__(self, batch: dict, heads: frozenset[str]) -> None:
        self._model.heads.active = heads
        inputs = self._model.data_preprocessor(batch, training=True)
        with self._optim_wrapper.optim_context(self._model):
            losses = self._model(**inputs, mode='loss')
        self._optim_wrapper.update_params(self._model.parse_losses(losses)[0])


def time_config(args: argparse.Namespace) -> dict[str, float]:
    """Returns the median seconds of each stage and step, and the ``size`` of a batch."""
    config = read_config(args.config, 'train_dataloader')
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
    for index in tqdm(range(min(WARM_UP + args.batches, len(loader))), 'batches'):
        torch.set_num_threads(1)
        elapsed, batch = timed(next, batches)
        seconds.setdefault('decode, augment', []).append(elapsed)
        elapsed, _ = timed(preprocessor, batch)
        seconds.setdefault('tokenise, batch, normalise', []).append(elapsed)
        if step and index < WARM_UP + args.train_steps:
            torch.set_num_threads(threads)
            for name, heads in step.heads.items():
                seconds.setdefault(name, []).append(timed(step, batch, heads)[0])
    medians = {name: statistics.median(values[WARM_UP:]) for name, values in seconds.items()}
    return {**medians, 'size': size}


def print_times(config: str, times: dict[str, float]) -> None:
    """Prints the times of data loading, and their share of a training step."""
    size = times.pop('size')
    steps = {name: times.pop(name) for name in list(times) if name.startswith('step')}
    times['data loading'] = sum(times.values())
    title = f'{config}, batch size {size}'
    table = make_table(title, '', 'ms per batch', 'samples/s per core')
    for name, seconds in times.items():
        table.add_row(name, f'{1e3 * seconds:.1f}', f'{size / seconds:.0f}')
    for name, seconds in steps.items():
        table.add_row(name, f'{1e3 * seconds:.1f}', '')
        table.add_row('  data loading / step', f'{times["data loading"] / seconds:.1%}', '')
    Console(width=100).print(table)


def pairs(count: int) -> Iterator[dict]:
    """Generates records like those of web data: folders of 10,000 files, captions of 5-14 words."""
    for index in range(count):
        words = WORDS[index % 17 :] + WORDS[: index % 17]
        image = f'cc3m/{index // 10_000:05}/{index:09}.jpg'
        yield {'image': image, 'caption': f'{" ".join(words[: 5 + index % 10])} {index}'}


def write_annotations(folder: Path, count: int) -> None:
    """Writes generated annotations, and the first image file, which the data set checks for."""
    write_albef_json(folder / ANNOTATIONS, pairs(count), count)
    image = folder / 'cc3m/00000/000000000.jpg'
    image.parent.mkdir(parents=True)
    image.touch()


def open_dataset(folder: Path) -> AlbefJsonDataset:
    """Opens the data set, without transforms."""
    return AlbefJsonDataset(
        ANNOTATIONS, str(folder), captions='each', pipeline=[itemgetter('text')]
    )


def run_rank(
    folder: Path, rank: int, args: argparse.Namespace, pids: SimpleQueue, end: Event
) -> None:
    """A training process: reads with its workers, sends their process ids and waits for the end."""
    dataset = open_dataset(folder)
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
    batches = iter(loader)  # kept alive, with its shuffled indices
    pids.put({os.getpid(), *islice(batches, args.samples // 64)})
    end.wait()


def used_memory(folder: Path, args: argparse.Namespace) -> int:
    """Returns the bytes of all training processes and workers, with shared pages counted once."""
    context = get_context('fork')
    pids, end = context.SimpleQueue(), context.Event()
    ranks = [
        context.Process(target=run_rank, args=(folder, rank, args, pids, end))
        for rank in range(args.ranks)
    ]
    for process in ranks:
        process.start()
    readers = set().union(*(pids.get() for _ in tqdm(ranks, 'ranks')))
    total = proportional_memory(readers)['Pss']
    end.set()
    for process in ranks:
        process.join()
    expected = args.ranks * (1 + args.workers)
    if len(readers) != expected:
        raise RuntimeError(
            f'{len(readers)} processes have read, expected {expected}: increase --samples'
        )
    return total


def measure_index(args: argparse.Namespace, folder: Path) -> None:
    """Prints the size of an index, the time to build it and its memory."""
    few, many = folder / 'few', folder / 'many'
    # The memory of the same processes for as many reads of a small index is not due to the index.
    write_annotations(few, args.ranks * args.samples)
    open_dataset(few)
    write_annotations(many, args.index)
    first, _ = timed(open_dataset, many)
    again, _ = timed(open_dataset, many)
    on_disk = sum(file.stat().st_size for file in many.glob('*.xmodal_index/*'))
    used = used_memory(many, args) - used_memory(few, args)
    title = f'{args.index:,} pairs, {args.ranks} ranks x {args.workers} workers'
    table = make_table(title, '', 'measured')
    table.add_row('annotation file', f'{(many / ANNOTATIONS).stat().st_size / 1e9:.2f} GB')
    table.add_row('index on disk', f'{on_disk / 1e9:.2f} GB')
    table.add_row('first build', f'{first:.1f} s')
    table.add_row('next opening', f'{again:.3f} s')
    reads = args.samples * args.ranks
    table.add_row(f'memory of all processes after {reads:,} reads', f'{used / 1e9:.2f} GB')
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
