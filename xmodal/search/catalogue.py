"""The catalogue of an index: what is known of each image, in SQLite."""

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

import numpy as np

from xmodal.errors import FileError
from xmodal.search.sources import Entry

_TABLES = """
CREATE TABLE IF NOT EXISTS images (
    id INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL, file TEXT NOT NULL, start INTEGER,
    size INTEGER NOT NULL, mtime INTEGER NOT NULL, hash TEXT NOT NULL,
    width INTEGER NOT NULL, height INTEGER NOT NULL, taken TEXT);
CREATE TABLE IF NOT EXISTS broken (
    path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS state (rows INTEGER NOT NULL);
INSERT INTO state SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM state);
"""
Seen = dict[str, tuple[int, int, str | None]]  # size, time and hash by path
_COLUMNS = 'id, path, file, start, size, mtime, hash, width, height, taken'


class IndexedImage(NamedTuple):
    """A row of the catalogue; ``id`` is the row of its vector.

    ``taken`` is the time of the photograph, 'YYYY-MM-DD HH:MM:SS', where EXIF has one.
    """

    id: int
    path: str
    file: str
    start: int | None
    size: int
    mtime: int
    hash: str
    width: int
    height: int
    taken: str | None

    @property
    def entry(self) -> Entry:
        """Where its bytes are."""
        return Entry(self.path, self.file, self.start, self.size, self.mtime)


class Filter(NamedTuple):
    """Which images a query may find; None does not restrict.

    Attributes:
        path: a part of the path, in any normal form of Unicode.
        after: earliest capture time: 'YYYY', 'YYYY-MM', 'YYYY-MM-DD' or 'YYYY-MM-DD HH:MM:SS'.
        before: the capture time is earlier than this; in the same forms.
        min_width: in pixels.
        min_height: in pixels.
    """

    path: str | None = None
    after: str | None = None
    before: str | None = None
    min_width: int | None = None
    min_height: int | None = None


_TIME = re.compile(
    r'\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])( \d\d(:\d\d(:\d\d)?)?)?)?)?', re.ASCII
)
_ANEW = 'move the index away and make it anew'
_ALLOW = 'is its folder there, and may this user write to both?'
_ADVICE = {  # by a part of what SQLite says
    'malformed': _ANEW,
    'not a database': _ANEW,
    'no such': _ANEW,  # table, or column
    'locked': 'another process writes to it: try again when that has ended',
    'full': 'free some space',
    'readonly': _ALLOW,
    'unable to open': _ALLOW,
}
_PATH = 'instr(nfc(path), nfc(?)) > 0'  # macOS writes é as two characters, a keyboard as one
_CONDITIONS = Filter(_PATH, 'taken >= ?', 'taken < ?', 'width >= ?', 'height >= ?')


class Catalogue:
    """The catalogue of an index. Each call has a connection of its own, so threads may share it.

    Args:
        file: the SQLite file.

    Raises:
        FileError: from every method, when the file is damaged, or cannot be used now; says which.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.file, timeout=30)) as connection, connection:
                yield connection
        except sqlite3.DatabaseError as error:
            known = (advice for part, advice in _ADVICE.items() if part in str(error))
            advice = next(known, 'is its disk in order?')
            raise FileError(f'{self.file} cannot be used: {error}; {advice}') from error

    def create(self) -> None:
        """Makes the tables that are missing."""
        with self._open() as connection:
            connection.executescript(_TABLES)

    def rows(self) -> int:
        """Number of vectors that belong to the index, those of removed images included."""
        with self._open() as connection:
            return connection.execute('SELECT rows FROM state').fetchone()[0]

    def seen(self) -> Seen:
        """Size, time and hash of each known image by its path; no hash for a broken one."""
        with self._open() as connection:
            broken = connection.execute('SELECT path, size, mtime, NULL FROM broken').fetchall()
            whole = connection.execute('SELECT path, size, mtime, hash FROM images').fetchall()
        return {path: tuple(rest) for path, *rest in broken + whole}

    def commit(
        self,
        images: Iterable[IndexedImage],
        broken: Iterable[tuple[Entry, str]],
        touched: Iterable[Entry],
        rows: int,
    ) -> None:
        """Enters a batch: all of it or nothing.

        Args:
            images: new and changed ones.
            broken: with the reasons.
            touched: images whose file has a new time and the old content.
            rows: number of vectors afterwards.
        """
        with self._open() as connection:
            images, broken = list(images), list(broken)
            names = [(p.path,) for p in images] + [(entry.path,) for entry, _ in broken]
            for table in ('images', 'broken'):
                connection.executemany(f'DELETE FROM {table} WHERE path = ?', names)
            marks = ', '.join('?' * len(IndexedImage._fields))
            connection.executemany(f'INSERT INTO images ({_COLUMNS}) VALUES ({marks})', images)
            connection.executemany(
                'INSERT INTO broken VALUES (?, ?, ?, ?)',
                [(entry.path, entry.size, entry.mtime, reason) for entry, reason in broken],
            )
            connection.executemany(
                'UPDATE images SET file=?, start=?, size=?, mtime=? WHERE path=?',
                [(e.file, e.offset, e.size, e.mtime, e.path) for e in touched],
            )
            connection.execute('UPDATE state SET rows = ?', (rows,))

    def remove(self, paths: Iterable[str]) -> None:
        """Forgets images; their vectors are found no more."""
        with self._open() as connection:
            for table in ('images', 'broken'):
                connection.executemany(
                    f'DELETE FROM {table} WHERE path = ?', [(path,) for path in paths]
                )

    def ids(self, where: Filter | None = None) -> np.ndarray:
        """The images that a filter lets through, ascending, (K,) int64.

        Raises:
            ValueError: for a time in another form; as a text it would let through the wrong images.
        """
        for name in ('after', 'before'):
            time = getattr(where, name, None)
            if time is not None and not _TIME.fullmatch(time):
                raise ValueError(f'{name}={time!r}, expected a date such as 2020 or 2020-01-31')
        pairs = [(c, v) for c, v in zip(_CONDITIONS, where or (), strict=False) if v is not None]
        clause = ' AND '.join(condition for condition, _ in pairs) or '1'
        with self._open() as connection:
            connection.create_function('nfc', 1, partial(normalize, 'NFC'), deterministic=True)
            rows = connection.execute(
                f'SELECT id FROM images WHERE {clause} ORDER BY id', [v for _, v in pairs]
            )
            return np.fromiter((row[0] for row in rows), np.int64)

    def images(self, ids: Iterable[int]) -> list[IndexedImage]:
        """The images of some ids, in that order; unknown ids are left out."""
        with self._open() as connection:
            query = f'SELECT {_COLUMNS} FROM images WHERE id = ?'
            rows = [connection.execute(query, (int(i),)).fetchone() for i in ids]
        return [IndexedImage(*row) for row in rows if row]

    def broken(self) -> list[tuple[str, str]]:
        """Paths and reasons of the images that were left out."""
        with self._open() as connection:
            return connection.execute('SELECT path, reason FROM broken ORDER BY path').fetchall()
