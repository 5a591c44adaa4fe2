"""Many strings in two flat files, which processes share."""

from array import array
from pathlib import Path

import numpy as np

_HALF = 'surrogatepass'  # half a character in a path costs this image alone, when it is read


class StringArray:
    """A read-only list of strings in a memory-mapped file.

    Args:
        stem: path of the two files without their suffixes.

    Raises:
        ValueError: when the files do not belong together.
    """

    def __init__(self, stem: Path) -> None:
        # Plain arrays on the same memory are faster to index.
        self._bytes = np.asarray(np.memmap(stem.with_suffix('.bytes'), mode='r', dtype=np.uint8))
        self._ends = np.asarray(np.load(stem.with_suffix('.npy'), mmap_mode='r'))
        if len(self._bytes) != self._ends[-1]:
            raise ValueError(f'{len(self._bytes)} bytes, expected {self._ends[-1]}')

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> str:
        start = int(self._ends[index - 1]) if index else 0
        return self._bytes[start : int(self._ends[index])].tobytes().decode(errors=_HALF)


class StringWriter:
    """Writes the files of a :class:`StringArray` without keeping the strings in memory.

    Args:
        stem: path of the two files without their suffixes.
    """

    def __init__(self, stem: Path) -> None:
        self._stem, self._ends, self._end = stem, array('q'), 0
        self._file = open(stem.with_suffix('.bytes'), 'wb')

    def append(self, string: str) -> None:
        """Adds a string."""
        self._end += self._file.write(string.encode(errors=_HALF))
        self._ends.append(self._end)

    def close(self) -> None:
        """Completes the files."""
        self._file.close()
        np.save(self._stem.with_suffix('.npy'), np.frombuffer(self._ends, np.int64))
