"""The file of an index's vectors."""

import os
import weakref
from pathlib import Path

import numpy as np

from xmodal.errors import FileError
from xmodal.files import name_in_errors


class VectorFile:
    """Rows of vectors on the disk, which are appended whole and read through the memory map.

    Args:
        path: of the file.
        dtype: 'float16' or 'float32'.
    """

    def __init__(self, path: Path, dtype: str) -> None:
        self.path, self.dtype = path, np.dtype(dtype)

    def write(self, rows: np.ndarray, first: int) -> None:
        """Writes rows (n, d) from row ``first`` on, over what a killed process left there."""
        rows = rows.astype(self.dtype)
        mode = 'r+b' if self.path.exists() else 'w+b'
        with name_in_errors(self.path), open(self.path, mode) as output:
            output.truncate(first * rows.shape[1] * rows.itemsize)
            output.seek(0, os.SEEK_END)
            output.write(rows.tobytes())
            output.flush()
            os.fsync(output.fileno())

    def read(self, rows: int, width: int) -> np.ndarray:
        """The first rows, (rows, width), through the memory map.

        Raises:
            FileError: when there are fewer.
        """
        if not rows:
            return np.zeros((0, width), self.dtype)
        self._require(rows, width)
        return np.memmap(self.path, self.dtype, 'r', shape=(rows, width))

    def open(self, rows: int, width: int) -> 'np.ndarray | DiskRows':
        """The first rows, to be read one by one.

        Raises:
            FileError: when there are fewer.
        """
        if not rows:
            return np.zeros((0, width), self.dtype)
        self._require(rows, width)
        return DiskRows(self.path, self.dtype, (rows, width))

    def _require(self, rows: int, width: int) -> None:
        is_there = self.path.exists()
        if not is_there or self.path.stat().st_size < rows * width * self.dtype.itemsize:
            raise FileError(f'{self.path} is shorter than the catalogue says: make the index anew')


class DiskRows:
    """Rows of a file that are read when they are asked for, by any number of threads.

    A memory map of rows far apart would count the pages around each of them as the process's own,
    gigabytes of them, until the system needs the memory.

    Args:
        path: of the file.
        dtype: of a number.
        shape: (N, d).
    """

    def __init__(self, path: Path, dtype: np.dtype, shape: tuple[int, int]) -> None:
        self.path, self.dtype, self.shape = path, dtype, shape
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def __getitem__(self, ids: np.ndarray) -> np.ndarray:
        """The rows of K numbers, (K, d).

        Raises:
            FileError: when the file has become shorter.
        """
        rows = np.empty((len(ids), self.shape[1]), self.dtype)
        stride = rows.itemsize * self.shape[1]
        for row, start in zip(rows, (stride * ids).tolist(), strict=True):
            if os.preadv(self._file, [row], start) != stride:
                raise FileError(f'{self.path} has become shorter: make the index anew')
        return rows
