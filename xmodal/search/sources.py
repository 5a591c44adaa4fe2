"""Where the images of an index are: folders, patterns, tables, lists and tar shards."""

import csv
import glob
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from xmodal.datasets.image_file import IMAGE_SUFFIXES, BrokenImageError, read_image_bytes
from xmodal.errors import FileError
from xmodal.files import read_json, reads

SUFFIXES = (*IMAGE_SUFFIXES, '.tif', '.tiff', '.gif')


class Entry(NamedTuple):
    """One image of a source.

    Attributes:
        path: what names it: its file, or ``SHARD.tar::MEMBER``.
        file: the file that has its bytes.
        offset: of its first byte in a shard; None for a file of its own.
        size: number of bytes.
        mtime: time of the last change of the file, in nanoseconds.
    """

    path: str
    file: str
    offset: int | None
    size: int
    mtime: int

    def read(self) -> bytes:
        """The encoded image.

        Raises:
            BrokenImageError: when it cannot be read.
        """
        if self.offset is None:
            return read_image_bytes(self.file)
        try:
            with open(self.file, 'rb') as file:
                file.seek(self.offset)
                return file.read(self.size)
        except OSError as error:
            raise BrokenImageError(f'{self.path}: {error.strerror}') from error


def find_entries(source: str) -> list[Entry]:
    """The images of a source, in the order of their paths, each once.

    Args:
        source: a folder, which is searched with all folders in it; an image; a .csv with a column
            ``image`` or a .json of ALBEF, both with paths relative to the file; tar shards; or a
            pattern such as ``'photos/**/*.jpg'``.

    Raises:
        FileNotFoundError: when there is nothing.
    """
    path = Path(source)
    if path.is_dir():
        found = (p for p in path.rglob('*') if p.suffix.lower() in SUFFIXES)
    elif path.is_file():
        found = [path]
    else:
        found = [Path(name) for name in glob.glob(source, recursive=True)]
    entries = {entry.path: entry for file in found for entry in _entries(file)}
    if not entries:
        raise FileNotFoundError(
            f'{source}: no images. Expected a folder, a pattern in quotes, a .csv, a .json of '
            'ALBEF or a .tar'
        )
    return [entries[name] for name in sorted(entries)]


def _entries(file: Path) -> Iterator[Entry]:
    if file.suffix == '.tar':
        yield from _shard_entries(file)
    elif file.suffix in ('.csv', '.json'):
        names = _csv_names(file) if file.suffix == '.csv' else _albef_names(file)
        for name in names:
            yield _file_entry(file.parent / name)
    elif file.suffix.lower() in SUFFIXES:
        yield _file_entry(file)


def _file_entry(file: Path) -> Entry:
    """An entry of a file; one that is not there is broken when it is read."""
    try:
        status = file.stat()
        return Entry(str(file), str(file), None, status.st_size, status.st_mtime_ns)
    except (OSError, ValueError):
        return Entry(str(file), str(file), None, -1, -1)


@reads('a tar file that is not compressed')
def _shard_entries(file: Path) -> Iterator[Entry]:
    mtime = file.stat().st_mtime_ns
    try:
        with tarfile.open(file, 'r:') as tar:
            for member in tar:
                if member.isreg() and Path(member.name).suffix.lower() in SUFFIXES:
                    name = f'{file}::{member.name}'
                    yield Entry(name, str(file), member.offset_data, member.size, mtime)
    except tarfile.TarError as error:
        raise FileError(f'{file}: {error}') from error


@reads("a table in UTF-8 whose header has a column 'image'")
def _csv_names(file: Path) -> list[str]:
    with open(file, newline='', encoding='utf-8-sig') as table:
        return [row['image'] for row in csv.DictReader(table)]


@reads("a list of objects with the key 'image'")
def _albef_names(file: Path) -> list[str]:
    return [record['image'] for record in read_json(file)]
