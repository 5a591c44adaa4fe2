"""Indexing by several processes: each encodes a share, and the first joins the shares."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

from xmodal.files import exclusive_dir
from xmodal.search.build import changed, encode_entries
from xmodal.search.catalogue import Catalogue
from xmodal.search.index import CATALOGUE, ImageIndex
from xmodal.search.sources import Entry, find_entries
from xmodal.search.vectors import VectorFile

PARTS, VECTORS = 'parts', 'vectors'
_ROWS = 10_000  # that are joined at once


@contextmanager
def processes() -> Iterator[int]:
    """The group of the processes that torchrun has started, and the rank of this one.

    They may wait for each other for days.
    """
    dist.init_process_group('gloo', timeout=timedelta(days=30))
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()


def update_on_ranks(
    index: ImageIndex,
    source: str | Path,
    batch_size: int = 64,
    workers: int = 0,
    engine: str | None = None,
    dtype: str | None = None,
    **about: str,
) -> None:
    """:meth:`ImageIndex.update` by all processes of the group; arguments as there.

    The folder of the index is one that all of them see. What a process had encoded before it was
    killed is joined by the next call, whatever the number of processes then.
    """
    rank, entries = dist.get_rank(), find_entries(str(source))
    if rank == 0:
        with exclusive_dir(index.folder):
            index.prepare(source, engine, dtype, about)
            join_parts(index)
    dist.barrier()
    seen = index.catalogue.seen()
    new, _ = changed(entries, seen)
    part = index.folder / PARTS / str(rank)
    part.mkdir(parents=True, exist_ok=True)
    catalogue = Catalogue(part / CATALOGUE)
    catalogue.create()
    share = new[rank :: dist.get_world_size()]
    target = catalogue, VectorFile(part / VECTORS, index.dtype)
    encode_entries(index.inferencer, share, seen, *target, batch_size, workers, rank == 0)
    dist.barrier()
    if rank == 0:
        with exclusive_dir(index.folder):
            join_parts(index)
        index.update(source, batch_size, workers, engine, dtype, **about)
    dist.barrier()


def join_parts(index: ImageIndex) -> None:
    """Moves what is in the parts into the index; one that is killed meanwhile goes on."""
    for folder in sorted((index.folder / PARTS).glob('*')):
        catalogue = Catalogue(folder / CATALOGUE)
        catalogue.create()  # its process may have been killed before
        known = index.catalogue.seen()
        images = catalogue.images(catalogue.ids())
        images = [p for p in images if known.get(p.path) != (p.size, p.mtime, p.hash)]
        vectors = VectorFile(folder / VECTORS, index.dtype).read(catalogue.rows(), index.width)
        for start in range(0, len(images), _ROWS):
            chunk, first = images[start : start + _ROWS], index.catalogue.rows()
            index.vectors.write(vectors[[p.id for p in chunk]], first)
            moved = [p._replace(id=row) for row, p in enumerate(chunk, first)]
            index.catalogue.commit(moved, [], [], first + len(moved))
        sizes = catalogue.seen()
        broken = [(Entry(p, p, None, *sizes[p][:2]), why) for p, why in catalogue.broken()]
        index.catalogue.commit([], broken, [], index.catalogue.rows())
        shutil.rmtree(folder)
