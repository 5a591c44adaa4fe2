"""Measures the memory and the speed of reading region features in random order.

    python tools/analysis/benchmark_regions.py --images 20000 --workers 4
    python tools/analysis/benchmark_regions.py --store data/regions/mscoco --workers 4

The first command generates a store (36 regions for each image, 2,048 wide, with boxes and labels)
and reads it; the second reads an existing store. Memory is that of a training process and its
workers, with each shared page counted once. It is split into private memory and pages of files,
which the system can drop at any time. For comparison the table has the memory that is needed if
every worker holds all features, as in the original code of LXMERT. Linux only.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from mmengine.logging import MMLogger
from rich.console import Console
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from xmodal.benchmark import make_parser, make_table, proportional_memory
from xmodal.datasets.collate import stack_regions
from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.region_store import RegionStore
from xmodal.datasets.region_writer import DTYPES, RegionStoreWriter
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.structures import ObjectLabels

REGIONS, WIDTH = 36, 2048


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('--store', type=Path, help='an existing store')
    parser.add_argument(
        '--images', type=at_least(1), default=20_000, help='images of a generated store'
    )
    parser.add_argument('--dtype', choices=DTYPES, default='float32', help='of a generated store')
    parser.add_argument(
        '--folder', type=Path, help='where to generate it; default: a temporary folder'
    )
    parser.add_argument('--workers', type=at_least(0), default=4, help='worker processes')
    parser.add_argument('--batch-size', type=at_least(1), default=256, help='batch size')
    parser.add_argument('--batches', type=at_least(1), default=100, help='number of batches read')
    return parser.parse_args()


class RandomReads(Dataset):
    """The regions of random images, with the id of the process that read them.

    Args:
        folder: the region store.
        count: number of reads.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.store, self.count = RegionStore(folder), count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict:
        image = int(np.random.default_rng(index).integers(len(self.store)))
        return {'inputs': self.store[self.store.image_id(image)], 'data_samples': os.getpid()}


def generate(count: int) -> Iterator[DetectedImage]:
    """Generates images of the size that LXMERT uses."""
    rng = np.random.default_rng(0)
    corners = rng.random((REGIONS, 2, 2)) * 480
    boxes = np.concatenate([corners.min(1), corners.max(1)], 1).astype(np.float32)
    confidences = rng.random(REGIONS, np.float32)
    for index in tqdm(range(count), 'generating', unit=' images'):
        labels = ObjectLabels(
            rng.integers(1600, size=REGIONS),
            confidences,
            rng.integers(400, size=REGIONS),
            confidences,
        )
        features = rng.random((REGIONS, WIDTH), np.float32)
        yield DetectedImage(f'{index:012d}', 480, 480, features, boxes, labels)


def write(folder: Path, count: int, dtype: str) -> None:
    """Writes a store of generated images."""
    with RegionStoreWriter(folder, {'generated': count}, dtype) as writer:
        for image in generate(count):
            writer.append(image)
        writer.finish()


def bytes_in_arrays(store: RegionStore) -> int:
    """Returns the bytes of all regions as LXMERT's arrays: float32, labels in int64."""
    labels = 2 * (8 + 4)  # of object and attribute, each with its confidence
    return store.num_regions * (4 * store.feature_dims + 4 * 4 + labels)


def read(dataset: Dataset, args: argparse.Namespace) -> tuple[dict[str, int], float]:
    """Reads all batches; returns the memory of all processes afterwards, and images per second."""
    loader = DataLoader(
        dataset,
        args.batch_size,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
        collate_fn=stack_regions,
    )
    pids, started = {os.getpid()}, time.perf_counter()
    batches = iter(loader)
    for batch in tqdm(batches, 'reading', len(loader), unit=' batches'):
        pids.update(batch['data_samples'])
    rate = len(dataset) / (time.perf_counter() - started)
    return proportional_memory(pids), rate


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    MMLogger.get_instance('benchmark', log_level='ERROR')
    torch.set_num_threads(1)
    count = args.batches * args.batch_size
    with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
        folder = args.store or Path(temporary, 'store')
        if not args.store:
            write(folder, args.images, args.dtype)
        before = proportional_memory([os.getpid()])
        dataset = RandomReads(folder, count)
        opened = proportional_memory([os.getpid()])
        memory, rate = read(dataset, args)
        on_disk = sum(file.stat().st_size for file in folder.iterdir())
        images, held = len(dataset.store), bytes_in_arrays(dataset.store)
    title = f'{images:,} images, {args.workers} workers, {count:,} reads'
    table = make_table(title, '', 'measured')
    rows = {
        'store on disk': f'{on_disk / 1e9:.2f} GB',
        'memory for opening it': f'{(opened["Pss_Anon"] - before["Pss_Anon"]) / 1e6:.1f} MB',
        'memory of all processes': f'{memory["Pss_Anon"] / 1e9:.2f} GB',
        'pages of files in memory': f'{memory["Pss_File"] / 1e9:.2f} GB',
        'if every process held all images': f'{held * (1 + args.workers) / 1e9:.2f} GB',
        'images/s, in batches': f'{rate:.0f}',
    }
    for name, value in rows.items():
        table.add_row(name, value)
    Console(width=100).print(table)


if __name__ == '__main__':
    run_or_explain(main)
