"""Indexing by several processes: each encodes a share and adds it to the structure."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from itertools import chain
from pathlib import Path

import numpy as np
import torch.distributed as dist

from xmodal.files import exclusive_dir
from xmodal.search.build import changed, encode_entries, require_kept
from xmodal.search.catalogue import Catalogue
from xmodal.search.engine import Engine, choose_kind, fill, finish, train
from xmodal.search.index import CATALOGUE, ImageIndex
from xmodal.search.sources import Entry, find_entries
from xmodal.search.vectors import VectorFile

PARTS, VECTORS = 'parts', 'vectors'
TRAINED = 'trained.faiss'
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
    root: str | Path | None = None,
    **about: str,
) -> None:
    """:meth:`ImageIndex.update` by all processes of the group; arguments as there.

    The folder of the index is one that all of them see. What a process had encoded before it was
    killed is joined by the next call, whatever the number of processes then.
    """
    rank, entries = dist.get_rank(), find_entries(str(source), root)
    with exclusive_dir(index.folder) if rank == 0 else nullcontext():
        if rank == 0:
            index.prepare(source, engine, dtype, about)
            join_parts(index)
            seen = index.catalogue.seen()
            require_kept(index.folder, source, seen, changed(entries, seen)[1])
        dist.barrier()
        touched = _encode_share(index, entries, batch_size, workers)
        of_ranks = [None] * dist.get_world_size() if rank == 0 else None
        dist.gather_object(touched, of_ranks)  # the first process waits for all
        if rank == 0:
            join_parts(index)
            touched = chain.from_iterable(of_ranks)
            index.catalogue.commit([], [], touched, index.catalogue.rows())
            index.catalogue.remove(changed(entries, index.catalogue.seen())[1])
        dist.barrier()
        if engine or not index.is_current():
            built = build_on_ranks(index.matrix(), index.catalogue.ids(), engine, index.folder)
            if rank == 0:
                index.write_engine(built, source, about)
        dist.barrier()


def _encode_share(
    index: ImageIndex, entries: Sequence[Entry], batch_size: int, workers: int
) -> list[Entry]:
    """Encodes what this process has of the new images, into a part of its own.

    Returns:
        The others of its share: their content is known, and their file has a new time, or a shard
        has them at another place. The part does not know them; the index's catalogue does.
    """
    rank, seen = dist.get_rank(), index.catalogue.seen()
    part = index.folder / PARTS / str(rank)
    part.mkdir(parents=True, exist_ok=True)
    catalogue = Catalogue(part / CATALOGUE)
    catalogue.create()
    share = changed(entries, seen)[0][rank :: dist.get_world_size()]
    target = catalogue, VectorFile(part / VECTORS, index.dtype)
    encode_entries(index.inferencer, share, seen, *target, batch_size, workers, rank == 0)
    entered = catalogue.seen()
    return [entry for entry in share if entry.path not in entered]


def build_on_ranks(
    matrix: np.ndarray, ids: np.ndarray, kind: str | None, folder: Path
) -> Engine | None:
    """:meth:`Engine.build` by all processes of the group: each adds a share, FAISS merges them.

    The first process trains the structure, so that all shares have the same lists and codes. A
    graph (HNSW) cannot be merged: the first builds it alone.

    Args:
        matrix: see :meth:`Engine.build`, as ``ids`` and ``kind``.
        ids: the same in all processes.
        kind: the same in all processes.
        folder: that all processes see; what is written there is deleted.

    Returns:
        The structure on the first process; None on the others.
    """
    rank, kind = dist.get_rank(), kind or choose_kind(len(ids))
    if kind == 'hnsw':
        return Engine.build(matrix, ids, kind) if rank == 0 else None
    parts = folder / 'engine'
    if rank == 0:
        shutil.rmtree(parts, ignore_errors=True)  # of a process that was killed
        parts.mkdir()
        Engine(train(matrix, ids, kind), matrix, ids, kind).write(parts / TRAINED)
    dist.barrier()
    shares = np.array_split(ids, dist.get_world_size())
    share = Engine.read(parts / TRAINED, matrix, shares[rank], kind)
    fill(share.faiss_index, matrix, share.ids, progress=rank == 0)
    share.write(parts / f'{rank}.faiss')
    dist.barrier()
    if rank:
        return None
    merged = share.faiss_index
    for other, others in enumerate(shares[1:], 1):
        part = Engine.read(parts / f'{other}.faiss', matrix, others, kind).faiss_index
        merged.merge_from(part, 0 if kind == 'flat' else merged.ntotal)
    shutil.rmtree(parts)
    return Engine(finish(merged), matrix, ids, kind)


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
