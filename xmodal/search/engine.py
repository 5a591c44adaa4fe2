"""Nearest vectors by FAISS, whose structure depends on how many there are."""

from pathlib import Path

import numpy as np
from tqdm import tqdm

from xmodal.errors import FileError
from xmodal.files import atomic_write
from xmodal.search.vectors import DiskRows

FLAT_UP_TO = 300_000
SAMPLE = 64  # training vectors of a list of IVF
LEAST = 16  # vectors that 4-bit codes are trained on: one for each code
SECOND_PASS = 400  # candidates of a rough search that are compared exactly
FEW = 20_000  # images that a filter lets through: all of them are compared exactly
_ADDED = 1 << 16  # vectors that are added at once
KINDS = ('flat', 'hnsw', 'ivfpq')


def import_faiss():
    """FAISS, or a sentence that says how to get it."""
    try:
        import faiss
    except ImportError as error:  # FAISS itself, or what it imports
        raise RuntimeError(f"search needs FAISS: pip install 'xmodal[search]' ({error})") from None
    return faiss


def choose_kind(count: int) -> str:
    """What suits a number of vectors: exact up to 300,000, 4-bit product quantization above."""
    return 'flat' if count <= FLAT_UP_TO else 'ivfpq'


class Engine:
    """Nearest vectors among those of an index, by inner product.

    Args:
        faiss_index: over the vectors ``matrix[ids]``, in that order.
        matrix: all vectors, float16 or float32 (N, d): memory-mapped, or read one by one.
        ids: rows of the matrix that may be found, ascending, (K,) int64.
        kind: of ``KINDS``.
    """

    def __init__(
        self, faiss_index, matrix: np.ndarray | DiskRows, ids: np.ndarray, kind: str
    ) -> None:
        self.faiss_index, self.matrix, self.ids, self.kind = faiss_index, matrix, ids, kind

    @classmethod
    def build(cls, matrix: np.ndarray, ids: np.ndarray, kind: str | None = None) -> 'Engine':
        """Trains on a sample and adds all vectors.

        Raises:
            ValueError: when there is no such kind.
        """
        kind = kind or choose_kind(len(ids))
        return cls(finish(fill(train(matrix, ids, kind), matrix, ids)), matrix, ids, kind)

    @classmethod
    def read(cls, file: Path, matrix: DiskRows, ids: np.ndarray, kind: str) -> 'Engine':
        """Reads what :meth:`write` wrote."""
        return cls(import_faiss().read_index(str(file)), matrix, ids, kind)

    def write(self, file: Path) -> None:
        """Writes the structure without the vectors of the matrix, complete or not at all."""
        with atomic_write(file) as path:
            try:
                import_faiss().write_index(self.faiss_index, str(path))
            except RuntimeError as error:  # names a line of C++
                raise FileError(f'{file} cannot be written: is the disk full?') from error

    def search(
        self, queries: np.ndarray, k: int, allowed: np.ndarray | None = None
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The best ids of each query and their exact scores, best first.

        FAISS finds candidates; the vectors on the disk rank them.

        Args:
            queries: float32 (Q, d).
            k: how many.
            allowed: ids that may be found, ascending; None for all.

        Returns:
            For each query ids, int64, and scores, float32; fewer than k where there are fewer.
        """
        if allowed is not None:  # the catalogue may know images that are newer than the structure
            allowed = allowed[np.isin(allowed, self.ids, assume_unique=True)]
        few = self.ids if allowed is None else allowed
        if not len(self.ids) or (allowed is not None and len(allowed) <= FEW):
            return [self._exact(query, few, k) for query in queries]
        depth = min(k if self.kind == 'flat' else max(k, SECOND_PASS), len(few))
        options = None if allowed is None else self._only(allowed)
        _, found = self.faiss_index.search(queries, depth, params=options)
        ids = [self.ids[np.sort(places[places >= 0])] for places in found]
        return [self._exact(*pair, k) for pair in zip(queries, ids, strict=True)]

    def _only(self, allowed: np.ndarray):
        """FAISS's parameters of a search among some ids."""
        faiss = import_faiss()
        mask = np.zeros(len(self.ids), bool)
        mask[np.searchsorted(self.ids, allowed)] = True
        selector = faiss.IDSelectorBitmap(np.packbits(mask, bitorder='little'))
        if self.kind == 'flat':
            return faiss.SearchParameters(sel=selector)
        if self.kind == 'hnsw':
            return faiss.SearchParametersHNSW(sel=selector, efSearch=SECOND_PASS)
        return faiss.SearchParametersIVF(sel=selector, nprobe=self.faiss_index.nprobe)

    def _exact(self, query: np.ndarray, ids: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        scores = self.matrix[ids].astype(np.float32) @ query
        best = np.argsort(-scores, kind='stable')[:k]
        return ids[best], scores[best]


def train(matrix: np.ndarray, ids: np.ndarray, kind: str):
    """An empty structure of FAISS that knows a sample of the vectors; arguments as of an engine.

    Raises:
        ValueError: when there is no such kind, or it needs more vectors.
    """
    if kind not in KINDS:
        raise ValueError(f'engine={kind!r}, expected one of {", ".join(KINDS)}')
    if kind == 'ivfpq' and len(ids) < LEAST:
        raise ValueError(
            f'--engine=ivfpq needs at least {LEAST} images, and there are {len(ids)}: leave it out'
        )
    index = _structure(kind, matrix, len(ids))
    if not index.is_trained:
        size = min(len(ids), 16_384 if kind == 'hnsw' else SAMPLE * index.nlist)
        chosen = np.random.default_rng(0).choice(ids, size, replace=False)
        index.train(matrix[np.sort(chosen)].astype(np.float32))
    return index


def fill(index, matrix: np.ndarray, ids: np.ndarray, progress: bool = True):
    """Adds the vectors ``matrix[ids]`` to a structure, which is returned.

    Args:
        index: of :func:`train`.
        matrix: all vectors.
        ids: of those to add, in their order.
        progress: shows a bar, when it takes longer than some seconds.
    """
    bar = tqdm(total=len(ids), desc='building', unit='vectors', delay=3, disable=not progress)
    with bar:
        for start in range(0, len(ids), _ADDED):
            rows = ids[start : start + _ADDED]
            index.add(matrix[rows].astype(np.float32))
            bar.update(len(rows))
    return index


def finish(index):
    """The structure that searches: lists of 4-bit codes are laid out for registers.

    They are filled and merged as plain lists before, because merging the others damages memory
    (FAISS 1.15).
    """
    faiss = import_faiss()
    if not isinstance(index, faiss.IndexIVFPQ):
        return index
    fast = faiss.IndexIVFPQFastScan(index)
    fast.own_fields, index.own_fields = True, False  # the centres of the lists
    fast.nprobe = max(1, index.nlist // 8)
    return fast


def _structure(kind: str, matrix: np.ndarray, count: int):
    """An empty structure of FAISS for so many of the vectors."""
    faiss = import_faiss()
    width, product = matrix.shape[1], faiss.METRIC_INNER_PRODUCT
    if kind == 'flat' and matrix.dtype == np.float32:
        return faiss.IndexFlatIP(width)
    if kind == 'flat':  # float16 as on the disk, so that it is exact
        return faiss.IndexScalarQuantizer(width, faiss.ScalarQuantizer.QT_fp16, product)
    if kind == 'hnsw':
        index = faiss.index_factory(width, 'HNSW32_SQfp16', product)
        index.hnsw.efConstruction, index.hnsw.efSearch = 80, SECOND_PASS
        return index
    # 4-bit codes of two dimensions each: a list is long and cheap.
    lists = max(1, min(1 << int(np.log2(max(count, 1)) / 2 - 2), count // SAMPLE))
    codes = width // 2 if width % 2 == 0 else width
    index = faiss.index_factory(width, f'IVF{lists},PQ{codes}x4', product)
    index.cp.niter, index.do_polysemous_training = 10, False  # which is for Hamming distances
    return index
