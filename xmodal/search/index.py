"""An index of images: a folder with their vectors, a catalogue and a manifest."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from xmodal.errors import FileError
from xmodal.files import atomic_write, exclusive_dir, write_json
from xmodal.search.build import changed, encode_entries, require_kept
from xmodal.search.catalogue import Catalogue, Filter, IndexedImage
from xmodal.search.engine import Engine, import_faiss
from xmodal.search.identity import ModelIdentity
from xmodal.search.manifest import MANIFEST, read_manifest, written_at
from xmodal.search.model import query_vectors, word_maps
from xmodal.search.query import Hit, Query
from xmodal.search.rerank import rerank_hits
from xmodal.search.sources import find_entries
from xmodal.search.vectors import VectorFile

CATALOGUE = 'catalogue.sqlite'
VECTORS = {'float16': 'vectors.f16', 'float32': 'vectors.f32'}
ENGINE, IDS = 'engine.faiss', 'ids.npy'


class ImageIndex:
    """Images that are found by a text, by an image, or by both.

    Example:
        >>> index = ImageIndex('work_dirs/index', inferencer)
        >>> index.update('photographs')
        >>> index.search([Query.parse('a dog in the snow and not a person')])

    Args:
        folder: of the index; a new one is made by :meth:`update`.
        inferencer: a :class:`xmodal.apis.Inferencer` of a model that gives vectors.

    Raises:
        ValueError: when the index was made with another model, or the model gives no vectors.
    """

    def __init__(self, folder: str | Path, inferencer: Any) -> None:
        self.folder, self.inferencer = Path(folder), inferencer
        self.catalogue = Catalogue(self.folder / CATALOGUE)
        self.identity = ModelIdentity(inferencer)
        self.fingerprint = self.identity.fingerprint
        self.width = len(self.identity.probes['text'])
        self._engine: Engine | None = None
        self._stamp = 0  # of the manifest that the engine was read with
        self._lock = Lock()
        if (self.folder / MANIFEST).exists():
            self.identity.require(self.folder)

    def update(
        self,
        source: str | Path,
        batch_size: int = 64,
        workers: int = 0,
        engine: str | None = None,
        dtype: str | None = None,
        progress: bool = True,
        root: str | Path | None = None,
        **about: str,
    ) -> None:
        """Makes the index equal to a source: adds, encodes anew and forgets images.

        Images whose file has the same size and time are not read, broken ones excepted; those
        with the same content are not encoded. After a kill it goes on where it was.

        Args:
            source: see :func:`~xmodal.search.sources.find_entries`, also for ``root``.
            batch_size: images that are encoded at once.
            workers: processes that decode.
            engine: 'flat', 'hnsw' or 'ivfpq'; None chooses by the number of images.
            dtype: of the vectors of a new index: 'float16', the default, or 'float32', twice as
                large, with which rankings are those of the retrieval test without any rounding.
            progress: shows a bar.
            root: of the paths in a list.
            **about: for the manifest, as the model's config and checkpoint.

        Raises:
            FileNotFoundError: when the source has no images, or none of its files is there; the
                index stays as it is.
            RuntimeError: when another process updates it.
            ValueError: for another dtype than the index has; for another source that has none of
                its images.
        """
        entries = find_entries(str(source), root)
        with exclusive_dir(self.folder):
            self.prepare(source, engine, dtype, about)
            seen = self.catalogue.seen()
            new, gone = changed(entries, seen)
            require_kept(self.folder, source, seen, gone)
            target = self.catalogue, self.vectors
            encode_entries(self.inferencer, new, seen, *target, batch_size, workers, progress)
            self.catalogue.remove(gone)
            if engine or not self.is_current():
                built = Engine.build(self.matrix(), self.catalogue.ids(), engine)
                self.write_engine(built, source, about)

    def prepare(
        self, source: str | Path, engine: str | None, dtype: str | None, about: dict[str, str]
    ) -> None:
        """Makes the manifest and the catalogue, if there are none; arguments as :meth:`update`."""
        import_faiss()  # an error now, not after all images are encoded
        if not (self.folder / MANIFEST).exists():
            self._write_manifest(engine, str(source), dtype or 'float16', about)
        self.identity.probe_image()
        self.identity.require(self.folder)
        self.identity.write_probes(self.folder)
        self._require_dtype(dtype)
        manifest = read_manifest(self.folder)
        if not about.items() <= manifest.items():  # its model has another name now
            former = manifest.get('source', str(source))
            self._write_manifest(manifest['engine'], former, self.dtype, about)
        self.catalogue.create()

    def _require_dtype(self, dtype: str | None) -> None:
        if dtype not in (None, self.dtype):
            raise ValueError(
                f'{self.folder} has vectors of {self.dtype}, and {dtype} was asked for: leave out '
                '--dtype, or give another --index'
            )

    @property
    def dtype(self) -> str:
        """Of the vectors on the disk."""
        return read_manifest(self.folder).get('dtype', 'float16')

    @property
    def vectors(self) -> VectorFile:
        """The file of the vectors."""
        return VectorFile(self.folder / VECTORS[self.dtype], self.dtype)

    def _write_manifest(
        self, engine: str | None, source: str, dtype: str, about: dict[str, str]
    ) -> None:
        # What it says of the model stays, where a script renews what the tool has made.
        content = read_manifest(self.folder) if (self.folder / MANIFEST).exists() else {}
        content |= dict(about, fingerprint=self.fingerprint, width=self.width, source=source)
        content |= {'dtype': dtype, 'engine': engine}
        write_json(self.folder / MANIFEST, content, indent=1)

    def write_engine(self, built: Engine, source: str | Path, about: dict[str, str]) -> None:
        """Writes the structure of the images, which the next query reads."""
        # Two files belong together: no process, and none after a kill, may read one of each.
        self._write_manifest(None, str(source), self.dtype, about)
        built.write(self.folder / ENGINE)
        with atomic_write(self.folder / IDS) as path, open(path, 'wb') as output:
            np.save(output, built.ids)
        self._write_manifest(built.kind, str(source), self.dtype, about)
        with self._lock:
            self._engine = None

    def is_current(self) -> bool:
        """Whether the structure has the images of the catalogue; after a kill it may not."""
        files = self.folder / ENGINE, self.folder / IDS
        if not all(file.exists() for file in files):
            return False
        if read_manifest(self.folder)['engine'] is None:
            return False
        return np.array_equal(np.load(files[1]), self.catalogue.ids())

    def matrix(self) -> np.ndarray:
        """The vectors on the disk, (N, d), memory-mapped."""
        return self.vectors.read(self.catalogue.rows(), self.width)

    @property
    def engine(self) -> Engine:
        """The structure that searches: read at the first query, and again after an update."""
        with self._lock:
            while (stamp := written_at(self.folder)) != self._stamp or self._engine is None:
                kind = read_manifest(self.folder)['engine']
                if kind is None and self._engine is not None:
                    return self._engine  # another process renews it
                if kind is None or not (self.folder / ENGINE).exists():
                    raise FileError(f'{self.folder} is not complete: run the indexing again')
                ids = np.load(self.folder / IDS, mmap_mode='r')  # few of them are read
                rows = self.vectors.open(self.catalogue.rows(), self.width)
                read = Engine.read(self.folder / ENGINE, rows, ids, kind)
                if written_at(self.folder) != stamp:
                    continue  # the files may be of two structures
                if read.faiss_index.ntotal != len(ids):
                    raise FileError(f'{self.folder} is not complete: run the indexing again')
                self._engine, self._stamp = read, stamp
            return self._engine

    def search(
        self,
        queries: Sequence[Query],
        k: int = 10,
        where: Filter | None = None,
        rerank: int = 0,
    ) -> list[list[Hit]]:
        """The best images of each query, best first.

        Args:
            queries: that are encoded together.
            k: images of each query.
            where: restricts what is found.
            rerank: how many of the best are ranked anew by the fusion encoder, by their texts
                alone.

        Raises:
            ValueError: when a query has neither a text nor an image, or a text without a word;
                when re-ranking is asked of a query without a text, of a model without an ITM head,
                or of a region store.
        """
        if not queries:
            return []
        for query in queries:
            query.require_content()
        if rerank and not all(query.sentence for query in queries):
            raise ValueError('re-ranking needs a text in every query')
        engine = self.engine  # first: the catalogue of an index that is not there would be made
        allowed = None if where is None or where == Filter() else self.catalogue.ids(where)
        vectors = query_vectors(self.inferencer, queries)
        found = engine.search(vectors, max(k, rerank), allowed)
        results = []
        for query, (ids, scores) in zip(queries, found, strict=True):
            by_id = dict(zip(ids.tolist(), scores.tolist(), strict=True))
            images = self.catalogue.images(ids)
            hits = [Hit(image, by_id[image.id]) for image in images]
            if rerank:
                hits = rerank_hits(self.inferencer, query, hits, rerank)
            results.append(hits[:k])
        return results

    def captions(self, image: object, texts: Sequence[str]) -> list[tuple[str, float]]:
        """Which of these texts: each with its cosine, best first."""
        scores = self.inferencer.similarity([image], texts)[0].tolist()
        return sorted(zip(texts, scores, strict=True), key=lambda pair: -pair[1])

    def heat_maps(self, image: IndexedImage, text: str) -> list[tuple[str, np.ndarray]]:
        """See :func:`~xmodal.search.model.word_maps`."""
        return word_maps(self.inferencer, text, image.entry.read())
