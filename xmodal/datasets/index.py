"""An annotation file as a few memory-mapped arrays on disk.

A list of five million Python dicts costs gigabytes, and every worker that touches it makes a copy.
Here strings stand in one byte blob and numbers in flat arrays; processes share the pages.
"""

import hashlib
import json
import os
import shutil
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from filelock import FileLock
from mmengine.logging import print_log

from xmodal.datasets.seeding import derive_seed

_VERSION = 4  # raise it with every change of what an index holds


class Entry(NamedTuple):
    """What a reader finds in its file for one image.

    Attributes:
        image: path of the image, as it stands in the file.
        captions: its captions, cleaned; empty ones are left out of the index.
        image_id: the file's own id, or None.
    """

    image: str
    captions: list[str]
    image_id: int | None = None

    def check(self) -> None:
        """Looks whether an index can hold it.

        Raises:
            ValueError: says what is wrong.
        """
        if not isinstance(self.image, str) or not self.image:
            raise ValueError(f'the image is {self.image!r}, expected a path or an id')
        self.image.encode()  # half a character has no bytes, which is a ValueError as well
        if not isinstance(self.captions, list):
            raise ValueError(f'captions of {self.image} are {self.captions!r}, expected a list')
        if wrong := [text for text in self.captions if not isinstance(text, str)]:
            raise ValueError(f'a caption of {self.image} is {wrong[0]!r}, expected a text')
        if self.image_id is not None and not -(2**63) <= self.image_id < 2**63:
            raise ValueError(
                f'the id of {self.image} is {self.image_id}, expected a number of 64 bits'
            )


class StringArray:
    """Strings one after another in a memory-mapped file.

    Args:
        stem: path of the two files without their endings.
    """

    def __init__(self, stem: Path) -> None:
        # As plain arrays of the same memory, which are quicker to index.
        self._bytes = np.asarray(np.memmap(stem.with_suffix('.bytes'), mode='r', dtype=np.uint8))
        self._ends = np.asarray(np.load(stem.with_suffix('.npy'), mmap_mode='r'))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> str:
        start = int(self._ends[number - 1]) if number else 0
        return self._bytes[start : int(self._ends[number])].tobytes().decode()


class StringWriter:
    """Writes the files of a :class:`StringArray`, without holding the strings.

    Args:
        stem: path of the two files without their endings.
    """

    def __init__(self, stem: Path) -> None:
        self._stem, self._ends, self._end = stem, array('q'), 0
        self._file = open(stem.with_suffix('.bytes'), 'wb')

    def append(self, string: str) -> None:
        """Adds a string."""
        self._end += self._file.write(string.encode())
        self._ends.append(self._end)

    def close(self) -> None:
        """Completes the files."""
        self._file.close()
        np.save(self._stem.with_suffix('.npy'), np.frombuffer(self._ends, np.int64))


class CaptionIndex:
    """Images and captions by number.

    Args:
        folder: where :func:`open_index` wrote it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = StringArray(folder / 'images')
        self.texts = StringArray(folder / 'captions')
        self.image_ids = np.load(folder / 'image_ids.npy', mmap_mode='r')
        self._first_caption = np.load(folder / 'first_caption.npy', mmap_mode='r')

    def __reduce__(self) -> tuple:
        # A worker process maps the files again instead of receiving their content.
        return CaptionIndex, (self.folder,)

    def captions(self, image: int) -> list[str]:
        """All captions of an image."""
        first, last = self._first_caption[image : image + 2]
        return [self.texts[number] for number in range(first, last)]

    def owner(self, caption: int) -> int:
        """The image a caption belongs to."""
        return int(np.searchsorted(self._first_caption, caption, 'right')) - 1


def open_index(
    files: list[Path], options: dict, read: Callable[[Path], Iterable[Entry]]
) -> CaptionIndex:
    """Opens the index of annotation files, building it the first time.

    It lies next to the first file, or in the user's cache where that folder is read-only, under a
    name made from the files' places, sizes and times and the options: a changed file gets a new
    index. Of several processes one builds and the others wait.

    Args:
        files: annotation files.
        options: whatever else changes the content.
        read: yields a file's entries.

    Raises:
        ValueError: when no file has an image with a caption, or different images have one id.
    """
    beside = files[0].parent
    # Relative, so that a data folder may move or be mounted elsewhere without a new index.
    stamps = [(os.path.relpath(f, beside), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    key = json.dumps([_VERSION, stamps, options], sort_keys=True)
    name = f'{files[0].name}.{hashlib.sha256(key.encode()).hexdigest()[:12]}.xmodal_index'
    # One cache serves many folders, whose files may have names, sizes and times in common.
    cache = Path(os.environ.get('XDG_CACHE_HOME', Path.home() / '.cache'), 'xmodal')
    cache /= hashlib.sha256(str(beside.resolve()).encode()).hexdigest()[:12]
    for parent in (beside, cache):
        if (parent / name).exists():
            return CaptionIndex(parent / name)
    parent = beside if os.access(beside, os.W_OK) else cache
    parent.mkdir(parents=True, exist_ok=True)
    folder, building = parent / name, parent / f'.{name}.building'
    with FileLock(parent / '.xmodal_index.lock'):
        if not folder.exists():
            shutil.rmtree(building, ignore_errors=True)  # of a process that was killed
            building.mkdir()
            try:
                _build(building, files, read)
                building.rename(folder)  # so it is whole or absent
            finally:
                shutil.rmtree(building, ignore_errors=True)
    return CaptionIndex(folder)


def _build(folder: Path, files: list[Path], read: Callable[[Path], Iterable[Entry]]) -> None:
    """Writes the files of an index into a folder."""
    images, captions = StringWriter(folder / 'images'), StringWriter(folder / 'captions')
    image_ids, identities, first_caption = array('q'), array('q'), array('q', [0])
    empty = 0
    for file in files:
        for entry in read(file):
            kept = [caption for caption in entry.captions if caption]
            empty += len(entry.captions) - len(kept)
            if not kept:
                continue
            for caption in kept:
                captions.append(caption)
            first_caption.append(first_caption[-1] + len(kept))
            images.append(entry.image)
            identities.append(derive_seed(entry.image))
            if entry.image_id is not None:
                image_ids.append(entry.image_id)
    images.close()
    captions.close()
    names = ', '.join(map(str, files))
    if not identities:
        raise ValueError(f'no image with a caption that is not empty in {names}')
    # Two files number their images independently: their own ids are kept only where there is one
    # file that has an id for all; else the path says which image it is.
    own = len(files) == 1 and len(image_ids) == len(identities)
    ids = np.frombuffer(image_ids, np.int64) if own else _numbered(identities)
    if own:
        _check_ids(ids, identities, folder, files[0])
    np.save(folder / 'image_ids.npy', ids)
    np.save(folder / 'first_caption.npy', np.frombuffer(first_caption, np.int64))
    print_log(
        f'Indexed {len(identities)} images with {first_caption[-1]} captions of {names}; {empty} '
        'captions are empty after cleaning and left out',
        'current',
    )


def _check_ids(ids: np.ndarray, identities: array, folder: Path, file: Path) -> None:
    """Looks whether equal ids are of the same image."""
    order = np.argsort(ids, kind='stable')
    values = np.frombuffer(identities, np.int64)[order]
    changes = np.flatnonzero((np.diff(ids[order]) == 0) & (values[1:] != values[:-1]))
    if len(changes):
        images = StringArray(folder / 'images')
        one, other = (int(place) for place in order[changes[0] : changes[0] + 2])
        raise ValueError(
            f'{file}: image_id {ids[one]} is of {images[one]} and of {images[other]}. Give each '
            'image an id of its own, or leave all ids out where they are optional'
        )


def _numbered(identities: array) -> np.ndarray:
    """Numbers distinct values in the order in which they first appear."""
    values = np.frombuffer(identities, np.int64)
    _, first, places = np.unique(values, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), np.int64)
    numbers[np.argsort(first)] = np.arange(len(first))
    return numbers[places]
