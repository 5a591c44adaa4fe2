"""Nearest vectors by FAISS, whose structure depends on how many there are."""

from pathlib import Path

import numpy as np

from xmodal.files import atomic_write

FLAT_UP_TO = 300_000
SAMPLE = 256  # training vectors of a list of IVF
SECOND_PASS = 400  # candidates of an approximate search that are compared exactly
KINDS = ('flat', 'hnsw', 'ivfpq')


def import_faiss():
    """FAISS, or a sentence that says how to get it."""
    try:
        import faiss
    except ImportError:
        raise RuntimeError("search needs FAISS: pip install -e '.[search]'") from None
    return faiss


def choose_kind(count: int) -> str:
    """What suits a number of vectors: exact up to 300,000, product quantization above."""
    return 'flat' if count <= FLAT_UP_TO else 'ivfpq'


class Engine:
    """Nearest vectors among those of an index, by inner product.

    Args:
        faiss_index: over the vectors ``matrix[ids]``, in that order.
        matrix: all vectors, float16 or float32 (N, d), usually memory-mapped.
        ids: rows of the matrix that may be found, ascending, (K,) int64.
        kind: of ``KINDS``.
    """

    def __init__(self, faiss_index, matrix: np.ndarray, ids: np.ndarray, kind: str) -> None:
        self.faiss_index, self.matrix, self.ids, self.kind = faiss_index, matrix, ids, kind

    @classmethod
    def build(cls, matrix: np.ndarray, ids: np.ndarray, kind: str | None = None) -> 'Engine':
        """Trains on a sample and adds all vectors.

        Raises:
            ValueError: when there is no such kind.
        """
        faiss = import_faiss()
        kind = kind or choose_kind(len(ids))
        if kind not in KINDS:
            raise ValueError(f'engine={kind!r}, expected one of {", ".join(KINDS)}')
        width = matrix.shape[1]
        product = faiss.METRIC_INNER_PRODUCT
        if kind == 'flat' and matrix.dtype == np.float32:
            index = faiss.IndexFlatIP(width)
        elif kind == 'flat':  # float16 as on the disk, so that it is exact
            index = faiss.IndexScalarQuantizer(width, faiss.ScalarQuantizer.QT_fp16, product)
        elif kind == 'hnsw':
            index = faiss.index_factory(width, 'HNSW32_SQfp16', product)
            index.hnsw.efConstruction, index.hnsw.efSearch = 80, 128
        else:
            lists = max(1, min(1 << int(np.log2(max(len(ids), 1)) / 2 + 1), len(ids) // 39))
            codes = next(size for size in (64, 32, 16, 8, 4, 2, 1) if width % size == 0)
            index = faiss.index_factory(width, f'IVF{lists},PQ{codes}', product)
            index.nprobe = max(1, lists // 64)
        if not index.is_trained:
            size = min(len(ids), 100_000 if kind != 'ivfpq' else SAMPLE * index.nlist // 4)
            chosen = np.random.default_rng(0).choice(ids, size, replace=False)
            index.train(matrix[np.sort(chosen)].astype(np.float32))
        for start in range(0, len(ids), 1 << 16):
            index.add(matrix[ids[start : start + (1 << 16)]].astype(np.float32))
        return cls(index, matrix, ids, kind)

    @classmethod
    def read(cls, file: Path, matrix: np.ndarray, ids: np.ndarray, kind: str) -> 'Engine':
        """Reads what :meth:`write` wrote."""
        return cls(import_faiss().read_index(str(file)), matrix, ids, kind)

    def write(self, file: Path) -> None:
        """Writes the structure without the vectors of the matrix, complete or not at all."""
        with atomic_write(file) as path:
            import_faiss().write_index(self.faiss_index, str(path))

    def search(
        self, queries: np.ndarray, k: int, allowed: np.ndarray | None = None
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The best ids of each query and their exact scores, best first.

        Args:
            queries: float32 (Q, d).
            k: how many.
            allowed: ids that may be found; None for all.

        Returns:
            For each query ids, int64, and scores, float32; fewer than k where there are fewer.
        """
        faiss = import_faiss()
        depth = k if self.kind == 'flat' else max(k, SECOND_PASS)
        parameters = None
        if allowed is not None:
            places = np.searchsorted(self.ids, allowed)
            selector = faiss.IDSelectorBatch(places)
            parameters = {
                'flat': faiss.SearchParameters,
                'hnsw': faiss.SearchParametersHNSW,
                'ivfpq': faiss.SearchParametersIVF,
            }[self.kind](sel=selector)
            if self.kind == 'hnsw':
                parameters.efSearch = max(128, depth)
            elif self.kind == 'ivfpq':
                parameters.nprobe = self.faiss_index.nprobe
        if not len(self.ids):
            return [(self.ids, np.zeros(0, np.float32))] * len(queries)
        depth = min(depth, len(self.ids))
        _, found = self.faiss_index.search(queries, depth, params=parameters)
        return [self._exact(q, row[row >= 0], k) for q, row in zip(queries, found, strict=True)]

    def _exact(self, query: np.ndarray, places: np.ndarray, k: int):
        ids = self.ids[np.sort(places)]
        scores = self.matrix[ids].astype(np.float32) @ query
        best = np.argsort(-scores, kind='stable')[:k]
        return ids[best], scores[best]
