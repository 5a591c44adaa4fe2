"""Measures the memory and the speed of reading region features at random.

    python tools/analysis/benchmark_regions.py --images 20000 --workers 4
    python tools/analysis/benchmark_regions.py --store data/regions/mscoco --workers 4

The first generates a store (36 regions an image, 2,048 wide, with boxes and labels) and reads it;
the second reads one that is there. Memory is that of a training process and its workers, apart by
what is theirs and what are pages of the files, which the system takes back when it needs them, each
shared page counted once. Beside it stands what the files take in memory when every worker holds
them, as LXMERT's own code does. Linux only.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from mmengine.logging import MMLogger
from rich.console import Console
from rich.table import Table
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from xmodal.datasets.collate import stack_regions
from xmodal.datasets.region_store import DetectedImage, RegionStore
from xmodal.datasets.region_writer import DTYPES, RegionStoreWriter
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import ShowDefaults
from xmodal.structures import ObjectLabels

REGIONS, WIDTH = 36, 2048


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('--store', type=Path, help='a store that is there')
    parser.add_argument('--images', type=int, default=20_000, help='of a generated store')
    parser.add_argument('--dtype', choices=DTYPES, default='float32', help='of a generated store')
    parser.add_argument('--folder', type=Path, help='where to generate it; the temporary folder')
    parser.add_argument('--workers', type=int, default=4, help='processes that read')
    parser.add_argument('--batch-size', type=int, default=256, help='images read at once')
    parser.add_argument('--batches', type=int, default=100, help='read and timed')
    return parser.parse_args()


class Memory(NamedTuple):
    """Bytes of processes, a page that n processes share counting 1/n in each.

    Attributes:
        own: what no file holds.
        pages: of files, which the system may drop.
    """

    own: int
    pages: int


class RandomReads(Dataset):
    """The regions of drawn images, and who read them."""

    def __init__(self, folder: Path, count: int) -> None:
        self.store, self.count = RegionStore(folder), count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict:
        place = int(np.random.default_rng(index).integers(len(self.store)))
        return {'inputs': self.store[self.store.image_id(place)], 'data_samples': os.getpid()}


def generate(count: int) -> Iterator[DetectedImage]:
    """Images of LXMERT's size."""
    rng = np.random.default_rng(0)
    corners = rng.random((REGIONS, 2, 2)) * 480
    boxes = np.concatenate([corners.min(1), corners.max(1)], 1).astype(np.float32)
    confidences = rng.random(REGIONS, np.float32)
    for number in tqdm(range(count), 'generating', unit=' images'):
        labels = ObjectLabels(
            rng.integers(1600, size=REGIONS),
            confidences,
            rng.integers(400, size=REGIONS),
            confidences,
        )
        features = rng.random((REGIONS, WIDTH), np.float32)
        yield DetectedImage(f'{number:012d}', 480, 480, features, boxes, labels)


def write(folder: Path, count: int, dtype: str) -> None:
    """A store of generated images."""
    with RegionStoreWriter(folder, {'generated': count}, dtype) as writer:
        for image in generate(count):
            writer.append(image)
        writer.finish()


def memory_of(pids: set[int]) -> Memory:
    """What processes take together."""
    found = {'Pss_Anon': 0, 'Pss_File': 0}
    for pid in pids:
        for line in Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines():
            name = line.partition(':')[0]
            if name in found:
                found[name] += int(line.split()[1]) << 10
    return Memory(found['Pss_Anon'], found['Pss_File'])


def read(dataset: Dataset, args: argparse.Namespace) -> tuple[Memory, float]:
    """Memory after reading all batches, and images a second."""
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
    return memory_of(pids), rate


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
        before = memory_of({os.getpid()})
        dataset = RandomReads(folder, count)
        opened = memory_of({os.getpid()})
        found, rate = read(dataset, args)
        on_disk = sum(file.stat().st_size for file in folder.iterdir())
        images = len(dataset.store)
    table = Table(title=f'{images:,} images, {args.workers} workers, {count:,} reads')
    for heading in ('', 'found'):
        table.add_column(heading, justify='right' if heading else 'left')
    held = images * REGIONS * (4 * WIDTH + 40) * (1 + args.workers)
    rows = {
        'store on disk': f'{on_disk / 1e9:.2f} GB',
        'opening it takes': f'{(opened.own - before.own) / 1e6:.1f} MB',
        'memory of all processes': f'{found.own / 1e9:.2f} GB',
        'pages of files beside it': f'{found.pages / 1e9:.2f} GB',
        'the same images held by every process': f'{held / 1e9:.2f} GB',
        'images a second, batched': f'{rate:.0f}',
    }
    for name, value in rows.items():
        table.add_row(name, value)
    Console(width=100).print(table)


if __name__ == '__main__':
    run_or_explain(main)
