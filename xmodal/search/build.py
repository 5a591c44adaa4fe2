"""Encoding images for an index, in batches that are entered whole or not at all."""

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from xmodal.datasets.image_file import BrokenImageError, header_size
from xmodal.datasets.transforms import PackRegionText
from xmodal.search.catalogue import Catalogue, IndexedImage, Seen
from xmodal.search.manifest import read_manifest
from xmodal.search.sources import Entry
from xmodal.search.vectors import VectorFile

_TAKEN = (36867, 306)  # EXIF: DateTimeOriginal, in its own part, and DateTime
_YEAR = re.compile(r'(?!0000)\d{4}')  # a clock that was never set says 0000:00:00 00:00:00
_EXIF_PART = 0x8769
_TURNED, _SIDEWAYS = 274, (5, 6, 7, 8)  # EXIF: Orientation, and its values that swap the sides
_EXIF_MARKS = b'Exif', b'eXIf', b'exif'  # in a JPEG, in a PNG, in an older PNG


class Decoded(NamedTuple):
    """An image that was read: a sample of the model, or the reason why there is none.

    Attributes:
        entry: whose it is.
        sample: of the pipeline; None for a broken image, and for one that is known.
        hash: of the content.
        size: width and height.
        taken: capture time.
        reason: why it is left out; None where it is not.
    """

    entry: Entry
    sample: dict | None = None
    hash: str = ''
    size: tuple[int, int] = (0, 0)
    taken: str | None = None
    reason: str | None = None


class Packed(NamedTuple):
    """A batch out of a worker, which sends one tensor much faster than many.

    Attributes:
        new: images to encode, without their samples, which are joined in ``inputs``.
        others: broken and known ones.
        inputs: what the model's collate function makes of the samples, in parts of one size.
    """

    new: list[Decoded]
    others: list[Decoded]
    inputs: list[dict]


class _Images(Dataset):
    """Reads and decodes; runs in worker processes."""

    def __init__(self, entries: Sequence[Entry], hashes: dict, pipeline: Callable) -> None:
        self.entries, self.hashes, self.pipeline = entries, hashes, pipeline

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Decoded:
        entry = self.entries[index]
        results = {'image_id': index, 'sample_index': index, 'text': ''}
        try:
            if entry.is_regions:
                return self._regions(entry, results)
            content = entry.read()
            digest = hashlib.sha256(content).hexdigest()
            if digest == self.hashes.get(entry.path):
                return Decoded(entry, hash=digest)
            fields = {'img_path': entry.path, 'img_bytes': content}
            sample = self.pipeline(results | fields)
            return Decoded(entry, sample, digest, *_header(content))
        except BrokenImageError as error:
            return Decoded(entry, reason=str(error))

    def _regions(self, entry: Entry, results: dict) -> Decoded:
        """Regions are packed as the pipeline packs them; what it does before is done."""
        regions, pack = entry.regions(), self.pipeline.transforms[-1]
        if not isinstance(pack, PackRegionText):
            raise ValueError(f'{entry.file} is a region store, and the model takes images')
        content = [x for x in (regions.features, regions.boxes) if x is not None]
        digest = hashlib.sha256(b''.join(x.numpy().tobytes() for x in content)).hexdigest()
        if digest == self.hashes.get(entry.path):
            return Decoded(entry, hash=digest)
        results |= {'img_path': entry.path, 'regions': regions}
        return Decoded(entry, pack(results), digest)


def _header(content: bytes) -> tuple[tuple[int, int], str | None]:
    """Width and height of an image as it is decoded, turned upright, and its capture time."""
    known = header_size(content)
    if known and not any(mark in content for mark in _EXIF_MARKS):
        return known, None
    size, found = known or (0, 0), []
    # OpenCV has decoded it: damaged EXIF, or a chunk too long for Pillow, spoils no image.
    with suppress(Exception), Image.open(io.BytesIO(content)) as image:
        size = image.size
        exif = Image.Image.getexif(image)  # that of PNG decodes the image first
        # Pillow gives the upright size of TIFF itself; OpenCV does not turn old PNG.
        if 'exif' in image.info and exif.get(_TURNED) in _SIDEWAYS:
            size = size[::-1]
        found = [exif.get_ifd(_EXIF_PART).get(_TAKEN[0]), exif.get(_TAKEN[1])]
    taken = next((str(t) for t in found if t and _YEAR.match(str(t))), None)
    return size, taken and f'{taken[:10].replace(":", "-")}{taken[10:19]}'


def encode_entries(
    inferencer: Any,
    entries: Sequence[Entry],
    seen: Seen,
    catalogue: Catalogue,
    vectors: VectorFile,
    batch_size: int = 64,
    workers: int = 0,
    progress: bool = True,
) -> None:
    """Adds images to the catalogue and their vectors to the file, batch by batch.

    A batch is on the disk as vectors before the catalogue counts them, so that a process that is
    killed loses the open batch alone.

    Args:
        inferencer: encodes.
        entries: new and changed ones.
        seen: what the catalogue knows: see :meth:`Catalogue.seen`.
        catalogue: of the index.
        vectors: their file.
        batch_size: images that are encoded and entered at once.
        workers: processes that decode.
        progress: shows a bar with images a second.
    """
    hashes = {path: known[2] for path, known in seen.items()}
    loader = DataLoader(
        _Images(entries, hashes, inferencer.pipeline),
        batch_size,
        num_workers=workers,
        collate_fn=partial(pack, inferencer.collate),
    )
    bar = tqdm(total=len(entries), desc='indexing', unit='images', disable=not progress)
    with bar, ThreadPoolExecutor(1) as writer:
        # The disk takes a batch while the model encodes the next one.
        last = writer.submit(int)
        for batch in received_ahead(loader):
            rows = encode(inferencer, batch)
            last.result()
            last = writer.submit(enter, batch, rows, catalogue, vectors)
            bar.update(len(batch.new) + len(batch.others))
        last.result()


def received_ahead(batches: Iterable[Packed]) -> Iterator[Packed]:
    """Receives the next batch out of a worker while the model encodes this one."""
    source = iter(batches)
    with ThreadPoolExecutor(1) as receiver:
        coming = receiver.submit(next, source, None)
        while (batch := coming.result()) is not None:
            coming = receiver.submit(next, source, None)
            yield batch


def pack(collate: Callable, items: list[Decoded]) -> Packed:
    """Joins the samples of images: all at once, where they have one size."""
    new = [item for item in items if item.sample is not None]
    samples = [item.sample for item in new]
    shapes = {tuple(getattr(sample['inputs'], 'shape', ())) for sample in samples}
    groups = [samples] if len(shapes) == 1 else [[sample] for sample in samples]
    others = [item for item in items if item.sample is None]
    return Packed([item._replace(sample=None) for item in new], others, [*map(collate, groups)])


def encode(inferencer: Any, batch: Packed) -> np.ndarray:
    """The vectors of the new images of a batch, (n, d)."""
    encoded = [inferencer.encode_batch(inputs).embedding for inputs in batch.inputs]
    return torch.cat(encoded).float().cpu().numpy() if encoded else np.zeros((0, 0))


def enter(batch: Packed, rows: np.ndarray, catalogue: Catalogue, vectors: VectorFile) -> None:
    """Enters a batch with the vectors of its new images."""
    first = catalogue.rows()
    if batch.new:
        vectors.write(rows, first)
    images = []
    for row, item in enumerate(batch.new, first):
        e = item.entry
        where = e.path, e.file, e.offset, e.size, e.mtime
        images.append(IndexedImage(row, *where, item.hash, *item.size, item.taken))
    broken = [(item.entry, item.reason) for item in batch.others if item.reason]
    touched = [item.entry for item in batch.others if not item.reason]
    catalogue.commit(images, broken, touched, first + len(batch.new))


def changed(entries: Sequence[Entry], seen: Seen) -> tuple[list[Entry], list[str]]:
    """The entries to encode, by size and time, and the paths that are gone."""

    def is_known(entry: Entry) -> bool:
        size, mtime, digest = seen.get(entry.path, (None, None, None))
        # A broken image, without a hash, is tried again: a disk or a permission may have failed.
        return digest is not None and (size, mtime) == (entry.size, entry.mtime)

    paths = {entry.path for entry in entries}
    new = [entry for entry in entries if not is_known(entry)]
    return new, [path for path in seen if path not in paths]


def require_kept(folder: Path, source: str | Path, seen: Seen, gone: Sequence[str]) -> None:
    """Refuses another source that has none of the images of an index: all would be forgotten.

    Raises:
        ValueError: names the source that the index was made of.
    """
    former, source = read_manifest(folder).get('source', str(source)), str(source)
    whole = {path for path, (_, _, digest) in seen.items() if digest is not None}
    if former != source and whole and whole.issubset(gone):
        raise ValueError(
            f'{folder} has {len(whole)} images of {former}, such as {min(whole)}, and {source} has '
            f'none of them: give {former} again, or another --index for {source}'
        )
