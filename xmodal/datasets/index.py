"""An index of an annotation file: a few memory-mapped arrays on disk.

A list of five million Python dicts takes gigabytes, and every worker that touches it makes a copy.
Here all strings are in one blob of bytes and all numbers in flat arrays; processes share the pages.
"""

import hashlib
import json
import logging
import os
import shutil
import sys
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from filelock import FileLock
from mmengine.logging import print_log

from xmodal.cache import cache_folder
from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.string_array import StringArray, StringWriter

_VERSION = 5  # increase it with every change of the content of an index


class Entry(NamedTuple):
    """One image of an annotation file.

    Attributes:
        image: path of the image, as written in the file.
        captions: its captions, cleaned; the index skips empty ones.
        image_id: the id in the file, or None.
    """

    image: str
    captions: list[str]
    image_id: int | None = None

    def check(self) -> None:
        """Raises ValueError for what an index cannot hold, and says what is wrong."""
        if not isinstance(self.image, str) or not self.image:
            raise ValueError(f'the image is {self.image!r}, expected a path or an id')
        if not isinstance(self.captions, list):
            raise ValueError(f'the captions of {self.image} are {self.captions!r}, expected a list')
        if invalid := [text for text in self.captions if not isinstance(text, str)]:
            raise ValueError(f'a caption of {self.image} is {invalid[0]!r}, expected a text')
        # A negative id marks an empty entry of a queue.
        is_id = isinstance(self.image_id, int | np.integer) and 0 <= self.image_id < 2**63
        if not (is_id or self.image_id is None):
            raise ValueError(
                f'the id of {self.image} is {self.image_id!r}, expected an integer in 0 … 2^63 - 1'
            )


class CaptionIndex:
    """Images and captions by their index.

    Args:
        folder: folder that :func:`open_index` wrote.

    Raises:
        OSError, ValueError, LookupError, EOFError: when a file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = StringArray(folder / 'images')
        self.texts = StringArray(folder / 'captions')
        self.image_ids = np.load(folder / 'image_ids.npy', mmap_mode='r')
        self._first_caption = np.load(folder / 'first_caption.npy', mmap_mode='r')
        counts = [len(self.image_ids), len(self._first_caption) - 1, int(self._first_caption[-1])]
        expected = [len(self.images), len(self.images), len(self.texts)]
        if counts != expected:
            raise ValueError(f'{counts} ids, images and captions, expected {expected}')

    def __reduce__(self) -> tuple:
        # A worker process maps the files again instead of receiving their content.
        return CaptionIndex, (self.folder,)

    def captions(self, image: int) -> list[str]:
        """All captions of an image."""
        first, last = self._first_caption[image : image + 2]
        return [self.texts[index] for index in range(first, last)]

    def image_of(self, caption: int) -> int:
        """The index of the image that a caption belongs to."""
        return int(np.searchsorted(self._first_caption, caption, 'right')) - 1


def identify(reader: type, base: type) -> str:
    """The name of a reader, with a digest of the code of modules outside of this package.

    What an index holds depends on that code, which its author changes; an index of the code before
    would be taken without a word. The package's own readers have ``_VERSION``.

    Args:
        reader: the class that reads the annotation files.
        base: the class of this package that it extends.
    """
    kinds = reader.__mro__[: reader.__mro__.index(base)]
    modules = dict.fromkeys(kind.__module__ for kind in kinds)
    package = __name__.partition('.')[0]
    sources = [
        Path(file).read_bytes()
        for module in modules
        if module.partition('.')[0] != package
        and (file := getattr(sys.modules.get(module), '__file__', None))
    ]
    if not sources:
        return reader.__name__
    return f'{reader.__name__} {hashlib.sha256(b"".join(sources)).hexdigest()}'


def open_index(
    files: list[Path], options: dict, read: Callable[[Path], Iterable[Entry]]
) -> CaptionIndex:
    """Opens the index of annotation files, and builds it the first time.

    It is written next to the first file, or to the user's cache when that folder is read-only. Its
    name depends on the files' relative paths, sizes and modification times and on the options, so
    that a changed file gets a new index. When several processes open it, one builds it and the
    others wait.

    Args:
        files: annotation files.
        options: everything else that changes the content.
        read: yields the entries of a file.

    Raises:
        ValueError: when no file has an image with a caption, or different images have the same id.
    """
    data_folder = files[0].parent
    # Relative paths, so that a data folder can be moved or mounted elsewhere without a new index.
    stamps = [
        (os.path.relpath(f, data_folder), f.stat().st_size, f.stat().st_mtime_ns) for f in files
    ]
    key = json.dumps([_VERSION, stamps, options], sort_keys=True)
    name = f'{files[0].name}.{hashlib.sha256(key.encode()).hexdigest()[:12]}.xmodal_index'
    # The cache is shared by many folders, whose files may have equal names, sizes and times.
    cache = cache_folder() / hashlib.sha256(str(data_folder.resolve()).encode()).hexdigest()[:12]
    for parent in (data_folder, cache):
        if index := _open_whole(parent / name):
            return index
    parent = data_folder if os.access(data_folder, os.W_OK) else cache
    parent.mkdir(parents=True, exist_ok=True)
    folder, unfinished = parent / name, parent / f'.{name}.building'
    # Of everyone: the file stays, and the next user of a shared folder opens it for writing.
    with FileLock(parent / '.xmodal_index.lock', mode=0o666):
        if not _open_whole(folder):
            if folder.exists():
                print_log(f'{folder} is damaged: built anew', 'current', logging.WARNING)
                shutil.rmtree(folder)
            shutil.rmtree(unfinished, ignore_errors=True)  # left by a killed process
            unfinished.mkdir()
            try:
                _build(unfinished, files, read)
                unfinished.rename(folder)  # so that it is complete or absent
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return CaptionIndex(folder)


def _open_whole(folder: Path) -> CaptionIndex | None:
    """The index in a folder; None when there is none or it is damaged."""
    try:
        return CaptionIndex(folder)
    except (OSError, ValueError, LookupError, EOFError):
        return None


def _build(folder: Path, files: list[Path], read: Callable[[Path], Iterable[Entry]]) -> None:
    """Writes the files of an index into a folder."""
    images, captions = StringWriter(folder / 'images'), StringWriter(folder / 'captions')
    image_ids, path_hashes, first_caption = array('q'), array('q'), array('q', [0])
    num_empty = num_bare = 0
    for file in files:
        for entry in read(file):
            kept = [caption for caption in entry.captions if caption]
            num_empty += len(entry.captions) - len(kept)
            if not kept:
                num_bare += 1
                continue
            for caption in kept:
                captions.append(caption)
            first_caption.append(first_caption[-1] + len(kept))
            images.append(entry.image)
            path_hashes.append(derive_seed(entry.image))
            if entry.image_id is not None:
                image_ids.append(entry.image_id)
    images.close()
    captions.close()
    names = ', '.join(map(str, files))
    if not path_hashes:
        raise ValueError(f'no image with a non-empty caption in {names}')
    # Two files number their images independently. The ids of the file are kept only when there is
    # one file with an id for every image; otherwise an image is identified by its path.
    has_ids = len(files) == 1 and len(image_ids) == len(path_hashes)
    ids = np.frombuffer(image_ids, np.int64) if has_ids else _enumerate_distinct(path_hashes)
    if has_ids:
        _check_ids(ids, path_hashes, folder, files[0])
    np.save(folder / 'image_ids.npy', ids)
    np.save(folder / 'first_caption.npy', np.frombuffer(first_caption, np.int64))
    print_log(
        f'Indexed {len(path_hashes)} images with {first_caption[-1]} captions of {names}; '
        f'{num_empty} captions are empty after cleaning and were skipped, and so were {num_bare} '
        'images without any',
        'current',
    )


def _check_ids(ids: np.ndarray, path_hashes: array, folder: Path, file: Path) -> None:
    """Checks that equal ids belong to the same image, and that an image has one id."""
    images, paths = StringArray(folder / 'images'), np.frombuffer(path_hashes, np.int64)
    remedy = 'or leave out all ids where they are optional'
    if rows := _first_unlike(ids, paths):
        first, second = rows
        raise ValueError(
            f'{file}: image_id {ids[first]} belongs to {images[first]} and to {images[second]}. '
            f'Give each image a different id, {remedy}'
        )
    if rows := _first_unlike(paths, ids):
        first, second = rows
        print_log(
            f'{file}: {images[first]} has the image_id {ids[first]} and {ids[second]}: its '
            f'captions are negatives of each other in a training. Give an image one id, {remedy}',
            'current',
            logging.WARNING,
        )


def _first_unlike(keys: np.ndarray, values: np.ndarray) -> list[int]:
    """The first two rows with the same key and other values; empty where there are none."""
    order = np.argsort(keys, kind='stable')
    unlike = np.flatnonzero((np.diff(keys[order]) == 0) & (np.diff(values[order]) != 0))
    return order[unlike[0] : unlike[0] + 2].tolist() if len(unlike) else []


def _enumerate_distinct(values: array) -> np.ndarray:
    """Numbers equal values alike, from 0, in the order in which they first appear."""
    values = np.frombuffer(values, np.int64)
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return ranks[inverse]
