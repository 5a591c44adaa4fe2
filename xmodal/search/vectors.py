"""The file of an index's vectors."""

import mmap
import os
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

    def read(self, rows: int, width: int, at_random: bool = False) -> np.ndarray:
        """The first rows, (rows, width).

        Args:
            rows: how many.
            width: d.
            at_random: single rows will be read, far apart. The system then reads no neighbours of
                theirs ahead, which would fill the memory.

        Raises:
            FileError: when there are fewer.
        """
        if not rows:
            return np.zeros((0, width), self.dtype)
        is_there = self.path.exists()
        if not is_there or self.path.stat().st_size < rows * width * self.dtype.itemsize:
            raise FileError(f'{self.path} is shorter than the catalogue says: make the index anew')
        with open(self.path, 'rb') as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if at_random and hasattr(mmap, 'MADV_RANDOM'):
            content.madvise(mmap.MADV_RANDOM)
        return np.frombuffer(content, self.dtype, rows * width).reshape(rows, width)
