"""Times the index of a data set of millions of pairs, and sums its memory.

    python tools/analysis/benchmark_index.py --pairs 5100000

Generates pairs (their images are never opened), builds the index, opens it again, and sums its
memory in training processes whose workers read at random. Linux only.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from itertools import islice
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from operator import itemgetter
from pathlib import Path

import torch
from mmengine.logging import MMLogger
from rich.console import Console
from torch.utils.data import DataLoader
from tqdm import tqdm

from xmodal.benchmark import make_parser, make_table, proportional_memory, timed
from xmodal.datasets.albef_writer import write_albef_json
from xmodal.datasets.captions import AlbefJsonDataset
from xmodal.datasets.samplers import EpochSampler
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.registry import register_all

ANNOTATIONS = 'pairs.json'
WORDS = 'two dogs and a man on the old wooden bench beside a red bicycle in front of shops'.split()


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('--pairs', type=at_least(1), default=5_100_000, help='in the index')
    parser.add_argument('--ranks', type=at_least(1), default=8, help='training processes')
    parser.add_argument(
        '--workers', type=at_least(0), default=4, help='worker processes of each rank'
    )
    parser.add_argument(
        '--samples', type=at_least(1), default=10_000, help='samples that each rank reads'
    )
    return parser.parse_args()


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
        persistent_workers=args.workers > 0,
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
    write_annotations(many, args.pairs)
    first, _ = timed(open_dataset, many)
    again, _ = timed(open_dataset, many)
    on_disk = sum(file.stat().st_size for file in many.glob('*.xmodal_index/*'))
    used = used_memory(many, args) - used_memory(few, args)
    title = f'{args.pairs:,} pairs, {args.ranks} ranks x {args.workers} workers'
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
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        measure_index(args, Path(folder))


if __name__ == '__main__':
    run_or_explain(main)
