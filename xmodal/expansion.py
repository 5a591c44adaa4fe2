"""How much memory the content of a file takes as Python's objects, estimated before it is parsed.

An empty list is three bytes of JSON and 72 in memory; a file that is made of little else would fill
the memory. What people annotate takes 3 to 10 times its size.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from xmodal.errors import FileError

_SMALL = 20_000_000  # bytes: such files are not looked at, whatever is in them fits
_MAX_MEMORY = 1 << 30
_MAX_FACTOR = 12
_BLOCK = 1 << 20
_KEY = re.compile(rb'"([^"\\]*)"\s*:')
_SAMPLE = 1 << 13  # bytes of a block in which keys are compared
# Bytes in memory, as sys.getsizeof gives them, with a pointer where it is kept.
_LIST, _FIRST_ITEM, _ITEM, _DICT, _KEY_IN_DICT, _TEXT, _NUMBER = 64, 32, 9, 120, 30, 56, 28
_NEW_KEY = 200  # of a text that no other object has as a key: JSON's decoder keeps it, too
_PICKLED = dict.fromkeys((b']', b'}', b'\x85', b'\x86', b'\x87', b'U', b'X', b'\x8c'), 72)


def require_json_fits(file: Path) -> None:
    """Refuses a JSON file that would take more than 1 GB, and more than 12 times its size.

    Raises:
        FileError: names the file, its size and the estimate.
    """
    if file.stat().st_size > _SMALL:
        _require(file, estimate_json(file))


def require_pickle_fits(file: str | Path, content: bytes) -> None:
    """Refuses a pickle as :func:`require_json_fits` does a JSON file."""
    if len(content) > _SMALL // 2:  # it expands twice as much as JSON
        _require(file, sum(cost * content.count(code) for code, cost in _PICKLED.items()))


def require_lines_fit(file: Path, content: bytes) -> None:
    """Refuses a list of lines as :func:`require_json_fits` does a JSON file."""
    if len(content) > _SMALL:
        _require(file, 3 * len(content) + 2 * _TEXT * content.count(b'\n'))


def estimate_json(file: Path) -> int:
    """The bytes of a JSON file's text and objects, from the number of its marks."""
    marks = (b'[', b'[]', b'{', b'{}', b'"', b',', b'":', b'" :')
    counts, sampled, distinct = dict.fromkeys(marks, 0), 0, set()
    for block in _blocks(file):
        for mark in marks:
            counts[mark] += block.count(mark)
        keys = _KEY.findall(block, 0, _SAMPLE)
        sampled += len(keys)
        distinct.update(keys)
    keys = counts[b'":'] + counts[b'" :']
    texts = max(0, counts[b'"'] // 2 - keys)
    lists, dicts = counts[b'['], counts[b'{']
    filled_lists, filled_dicts = lists - counts[b'[]'], dicts - counts[b'{}']
    values = counts[b','] + filled_lists + filled_dicts
    numbers = max(0, values - texts - lists - dicts)
    return (
        file.stat().st_size
        + _LIST * (lists + dicts)
        + _FIRST_ITEM * filled_lists
        + (_DICT - _LIST) * filled_dicts
        + _KEY_IN_DICT * keys
        + _NEW_KEY * keys * len(distinct) // max(sampled, 1)
        + _TEXT * texts
        + _NUMBER * numbers
        + _ITEM * counts[b',']
    )


def _blocks(file: Path) -> Iterator[bytes]:
    with open(file, 'rb') as content:
        while block := content.read(_BLOCK):
            yield block


def _require(file: str | Path, memory: int) -> None:
    size = Path(file).stat().st_size
    if memory > _MAX_MEMORY and memory > _MAX_FACTOR * size:
        raise FileError(
            f'{file} has {size} bytes and would take about {memory / 2**30:.1f} GB of memory, '
            f'{memory / size:.0f} times as much, and more than {_MAX_FACTOR} times is refused: '
            'annotations take 3 to 10 times their size. Is it the right file?'
        )
