"""An annotation file as a few memory-mapped arrays on disk.

A list of five million Python dicts costs gigabytes, and every worker that touches it makes a copy.
Here strings stand in one byte blob and numbers in flat arrays; processes share the pages.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mmengine.logging import print_log
from tqdm import tqdm

_VERSION = 1


class Entry(NamedTuple):
    """What a reader finds in its file for one image.

    Attributes:
        image: path of the image, as it stands in the file.
        captions: its captions.
        image_id: the file's own id, or None to number distinct paths.
    """

    image: str
    captions: list[str]
    image_id: int | None = None


class StringArray:
    """Strings one after another in a memory-mapped file.

    Args:
        stem: path of the two files without their endings.
    """

    def __init__(self, stem: Path) -> None:
        self._bytes = np.memmap(stem.with_suffix('.bytes'), mode='r', dtype=np.uint8)
        self._ends = np.load(stem.with_suffix('.npy'), mmap_mode='r')

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> str:
        start = int(self._ends[number - 1]) if number else 0
        return self._bytes[start : int(self._ends[number])].tobytes().decode()

    @staticmethod
    def write(stem: Path, strings: Iterable[str]) -> None:
        """Writes strings as they come, without holding them."""
        ends, end = [], 0
        with open(stem.with_suffix('.bytes'), 'wb') as file:
            for string in strings:
                end += file.write(string.encode())
                ends.append(end)
        np.save(stem.with_suffix('.npy'), np.array(ends, np.int64))


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
    files: list[Path], options: dict, read: Callable[[Path], Iterable[Entry]],
    clean: Callable[[str], str],
) -> CaptionIndex:  # fmt: skip
    """Opens the index of annotation files, building it the first time.

    It lies next to the first file, or in the user's cache where that folder is read-only, under a
    name made from the files' sizes and times and the options: a changed file gets a new index.

    Args:
        files: annotation files.
        options: whatever else changes the content.
        read: yields a file's entries.
        clean: applied to every caption; captions that are empty after it are left out.
    """
    stamps = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    key = json.dumps([_VERSION, stamps, options], sort_keys=True)
    name = f'{files[0].name}.{hashlib.sha256(key.encode()).hexdigest()[:12]}.xmodal_index'
    cache = Path(os.environ.get('XDG_CACHE_HOME', Path.home() / '.cache')) / 'xmodal'
    for parent in (files[0].parent, cache):
        if (parent / name / 'first_caption.npy').exists():
            return CaptionIndex(parent / name)
    parent = files[0].parent if os.access(files[0].parent, os.W_OK) else cache
    parent.mkdir(parents=True, exist_ok=True)
    _build(parent / name, files, read, clean)
    return CaptionIndex(parent / name)


def _build(
    folder: Path, files: list[Path], read: Callable[[Path], Iterable[Entry]],
    clean: Callable[[str], str],
) -> None:  # fmt: skip
    """Writes an index beside its place and moves it there, so that it is whole or absent."""
    building = Path(tempfile.mkdtemp(prefix=f'.{folder.name}.', dir=folder.parent))
    images, image_ids, first_caption, numbers = [], [], [0], {}
    empty = 0

    def captions() -> Iterable[str]:
        nonlocal empty
        for file in files:
            for entry in tqdm(read(file), f'indexing {file.name}', unit=' images', leave=False):
                cleaned = [clean(text) for text in entry.captions]
                kept = [text for text in cleaned if text]
                empty += len(cleaned) - len(kept)
                if not kept:
                    continue
                yield from kept
                first_caption.append(first_caption[-1] + len(kept))
                images.append(entry.image)
                number = numbers.setdefault(entry.image, len(numbers))
                image_ids.append(number if entry.image_id is None else entry.image_id)

    StringArray.write(building / 'captions', captions())
    StringArray.write(building / 'images', images)
    np.save(building / 'image_ids.npy', np.array(image_ids, np.int64))
    np.save(building / 'first_caption.npy', np.array(first_caption, np.int64))
    if empty:
        print_log(f'{folder.name}: {empty} captions are empty after cleaning, left out', 'current')
    try:
        building.rename(folder)
    except OSError:  # another process was quicker, with the same content
        shutil.rmtree(building)
