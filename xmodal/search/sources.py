"""Where the images of an index are: folders, patterns, tables, lists, tar shards, region stores."""

import glob
import os
import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from xmodal.datasets.image_file import IMAGE_SUFFIXES, BrokenImageError, read_image_bytes
from xmodal.datasets.image_table import read_rows
from xmodal.datasets.region_store import RegionStore, open_stores
from xmodal.datasets.transforms.regions import is_crop
from xmodal.fields import as_objects
from xmodal.files import CONTENT_ERRORS, SEPARATORS, content_error_message, read_json, reads
from xmodal.structures import Regions

LISTS = (*SEPARATORS, '.json')
_MISSING = -1  # in the place of the size and the time of a file that is not there


class Entry(NamedTuple):
    """One image of a source.

    Attributes:
        path: what names it: its file, ``SHARD.tar::MEMBER``, or ``STORE::ID`` for regions; of what
            follows the damage of a shard, the shard.
        file: the file that has its bytes, or the folder of a region store.
        offset: of its first byte in a shard; None for a file of its own, and for regions.
        size: number of bytes.
        mtime: time of the last change of the file, in nanoseconds.
        problem: why it cannot be read, if that is known before.
    """

    path: str
    file: str
    offset: int | None
    size: int
    mtime: int
    problem: str | None = None

    @property
    def is_regions(self) -> bool:
        """Whether it has regions in place of an image."""
        return self.offset is None and self.path != self.file

    def regions(self) -> Regions:
        """The regions of the image.

        Raises:
            BrokenImageError: when the store has them no more, or they are not finite.
        """
        try:
            return _store(self.file, self.mtime)[self.path.removeprefix(f'{self.file}::')]
        except (KeyError, ValueError) as error:
            raise BrokenImageError(f'{self.path}: {error}') from error

    def read(self) -> bytes:
        """The encoded image.

        Raises:
            BrokenImageError: when it cannot be read.
        """
        if self.is_regions:
            raise BrokenImageError(f'{self.path}: a region store has no images')
        if self.problem:
            raise BrokenImageError(self.problem)
        if self.offset is None:
            return read_image_bytes(self.file)
        try:
            with open(self.file, 'rb') as file:
                file.seek(self.offset)
                content = file.read(self.size)
        except OSError as error:
            raise BrokenImageError(f'{self.path}: {error.strerror}') from error
        if len(content) < self.size:
            raise BrokenImageError(f'{self.path}: the shard ends within it')
        return content


def find_entries(source: str, root: str | Path | None = None) -> list[Entry]:
    """The images of a source, in the order of their paths, each once.

    Args:
        source: a folder, which is searched with all folders in it, or is a region store; an image;
            a .csv or .tsv with a column ``image``, or a .json of ALBEF; tar shards; or a pattern
            such as ``'photos/**/*.jpg'``.
        root: folder that the paths in a list are relative to; None for that of the list.

    Raises:
        FileNotFoundError: when there is nothing, none of the files in a list is there, or all
            shards are damaged from their start.
        ValueError: for a file name that is not UTF-8, which the catalogue cannot hold; for a root
            of what is no list.
    """
    path = Path(source)
    if root is not None and path.suffix.lower() not in LISTS:
        raise ValueError(f'--root={root} is for a list ({", ".join(LISTS)}), and {source} is none')
    if (path / 'store.json').is_file() or any(path.glob('part_*/store.json')):
        return sorted(entry for store in open_stores(source) for entry in _store_entries(store))
    if path.is_dir():
        found = _images_below(path)
    elif path.is_file():
        found = _entries(path, root)
    else:
        names = glob.glob(source, recursive=True)
        found = (entry for name in names for entry in _entries(Path(name), root))
    entries = {entry.path: entry for entry in found}
    for name in entries:
        if name != name.encode(errors='replace').decode():
            raise ValueError(f'{name!a}: the name of the file is not UTF-8, rename it')
    if not entries:
        raise FileNotFoundError(
            f'{source}: no images. Expected a folder, a pattern in quotes, a .csv or .tsv, a '
            '.json of ALBEF, a .tar or a region store'
        )
    found = [entries[name] for name in sorted(entries)]
    if all(entry.size == _MISSING for entry in found):
        # An index keeps its images: the disk that has them may only be absent now.
        raise unreadable(source, len(found), found[0].problem or f'{found[0].path}: no such file')
    return found


def unreadable(source: str, count: int, reason: str) -> FileNotFoundError:
    """The error of a source of which no image at all can be read.

    Args:
        source: as it was given.
        count: of its images.
        reason: why the first one is left out, with its path.
    """
    advice = 'Give a source with images'
    if Path(source).suffix.lower() in LISTS:
        advice = 'Its paths are relative to its folder: give the one that they need with --root'
    return FileNotFoundError(
        f'{source}: no image can be read, {count} left out, the first is {reason}. {advice}'
    )


def _images_below(folder: Path) -> Iterator[Entry]:
    """Without a :class:`Path` for each file: folders have hundred thousands of them."""
    for parent, _, names in os.walk(folder, onerror=_raise):
        for name in names:
            if name.lower().endswith(IMAGE_SUFFIXES):
                yield _file_entry(os.path.join(parent, name))


def _raise(error: OSError) -> None:
    """A folder that cannot be listed now has not lost its images: they must not leave an index."""
    raise error


def _entries(file: Path, root: str | Path | None) -> Iterator[Entry]:
    suffix = file.suffix.lower()
    if suffix == '.tar':
        yield from _shard_entries(file)
    elif suffix in LISTS:
        names = _albef_names(file) if suffix == '.json' else _table_names(file)
        for name in names:
            yield _file_entry(str(Path(root or file.parent, name)))
    elif suffix in IMAGE_SUFFIXES:
        yield _file_entry(str(file))


def _file_entry(file: str) -> Entry:
    """An entry of a file; one that is not there is broken when it is read."""
    try:
        status = os.stat(file)
        return Entry(file, file, None, status.st_size, status.st_mtime_ns)
    except (OSError, ValueError):
        return Entry(file, file, None, _MISSING, _MISSING)


@lru_cache(4)
def _store(folder: str, mtime: int) -> RegionStore:
    """Opened once in a process, and again when it was made anew."""
    return RegionStore(folder)


def _store_entries(store: RegionStore) -> Iterator[Entry]:
    """The images of a store, without random crops of them."""
    mtime = (store.folder / 'store.json').stat().st_mtime_ns
    for image in range(len(store)):
        image_id = store.image_id(image)
        if not is_crop(store, image_id):
            yield Entry(f'{store.folder}::{image_id}', str(store.folder), None, 0, mtime)


def _shard_entries(file: Path) -> Iterator[Entry]:
    """The images of a shard; where it is damaged, those before, and an entry that says so."""
    mtime = file.stat().st_mtime_ns
    try:
        with tarfile.open(file, 'r:') as tar:
            for member in tar:
                if member.isreg() and Path(member.name).suffix.lower() in IMAGE_SUFFIXES:
                    name = f'{file}::{member.name}'
                    yield Entry(name, str(file), member.offset_data, member.size, mtime)
            # tarfile takes a header that is damaged or cut off for the end.
            tar.fileobj.seek(tar.offset)
            if tar.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError(f'neither a member nor the end at byte {tar.offset}')
    except (*CONTENT_ERRORS, tarfile.TarError) as error:
        problem = (
            f'{file}: {content_error_message(error)}. Expected a whole tar file that is not '
            'compressed; its images from there on are left out'
        )
        yield Entry(str(file), str(file), None, _MISSING, mtime, problem)


@reads("a table in UTF-8 whose header has a column 'image'")
def _table_names(file: Path) -> list[str]:
    return [row['image'] for _, row in read_rows(file, 'image', advice='rename that of the paths')]


@reads("a list of objects with the key 'image'")
def _albef_names(file: Path) -> list[str]:
    return [item.name('image') for item in as_objects(read_json(file))]
