"""Reading JSON that does not fit into memory: lists, and files with one object per line."""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tqdm import tqdm

from xmodal.fields import Fields, shorten
from xmodal.files import (
    CONTENT_ERRORS,
    JSON_DECODER,
    LFS_HINT,
    LFS_POINTER,
    content_error_message,
    decode_error_message,
    decode_json,
)

_SPACES = re.compile(r'\s*')
_CHUNK = 1 << 20  # bytes read at once; an item may be up to 16 times as long
_MAX_LINE = 1 << 25  # bytes: a file without line ends would be one line


def stream_json_list(path: Path) -> Iterator[Any]:
    """Yields the items of a file that is one JSON list, with a progress bar.

    Only a few chunks of the file are in memory at any time.

    Args:
        path: the file.

    Raises:
        ValueError: when the file is not a JSON list, is truncated, or continues after the list.
    """
    bar = tqdm(
        total=path.stat().st_size,
        desc=f'indexing {path.name}',
        unit='B',
        unit_scale=True,
        leave=False,
        delay=1,
    )
    with bar, open(path, 'rb') as file:
        chunks = _decode(file, bar)
        text, position = next(chunks, ''), 0
        # What may come next: the list, its first item or end, an item, a comma or the end.
        expected = '['
        while True:
            position = _SPACES.match(text, position).end()
            problem = 'it ends within the list'
            if position < len(text):
                char = text[position]
                if expected == '[':
                    if text.startswith(LFS_POINTER):
                        raise ValueError(LFS_HINT)
                    if char != '[':
                        raise ValueError(f'it starts with {char!r}, not with a list')
                    expected, position = 'item or ]', position + 1
                    continue
                if char == ']' and expected != 'item':
                    _require_end(text[position + 1 :], chunks)
                    return
                if expected == ', or ]':
                    if char != ',':
                        raise ValueError(
                            f'{text[position : position + 20]!r} follows an item, expected a comma'
                        )
                    expected, position = 'item', position + 1
                    continue
                try:
                    item, position = JSON_DECODER.raw_decode(text, position)
                except json.JSONDecodeError as error:
                    # Usually the item continues in the next chunk.
                    problem = f'{error.msg}, in or before byte {file.tell()}'
                else:
                    expected = ', or ]'
                    yield item
                    continue
            more = next(chunks, '')
            if not more or len(text) - position > 16 * _CHUNK:
                raise ValueError(problem)
            text, position = text[position:] + more, 0


def stream_objects(path: Path) -> Iterator[Fields]:
    """Yields the objects of a file that is one JSON list; see :func:`stream_json_list`."""
    return map(Fields, stream_json_list(path))


def _decode(file: BinaryIO, bar: tqdm) -> Iterator[str]:
    """Yields the text of a file in chunks that are not empty."""
    decoder = codecs.getincrementaldecoder('utf-8-sig')()
    while content := file.read(_CHUNK):
        bar.update(len(content))
        try:
            text = decoder.decode(content)
        except UnicodeDecodeError as error:
            start = file.tell() - len(content)
            raise ValueError(
                f'it is not UTF-8 after byte {start}: {decode_error_message(error)}'
            ) from error
        if text:
            yield text
    decoder.decode(b'', final=True)


def _require_end(rest: str, chunks: Iterator[str]) -> None:
    """Requires that nothing but spaces follows the list."""
    while not rest.strip():
        rest = next(chunks, None)
        if rest is None:
            return
    raise ValueError(f'{rest.strip()[:20]!r} follows the list: are these two files?')


def read_json_lines(path: Path) -> Iterator[tuple[int, Fields]]:
    """Yields the objects of a file with one JSON object per line, each with its line number.

    Raises:
        ValueError: names the line that is not a JSON object.
    """
    for line_number, line in read_lines(path):
        if not line.strip():
            continue
        with at_line(line_number):
            if line.startswith(LFS_POINTER.encode()):
                raise ValueError(LFS_HINT)
            try:
                item = decode_json(line.decode('utf-8-sig' if line_number == 1 else 'utf-8'))
            except UnicodeDecodeError as error:
                raise ValueError(f'it is not UTF-8: {decode_error_message(error)}') from error
            if not isinstance(item, dict):
                raise ValueError(f'it is {shorten(item)}, not an object')
        yield line_number, Fields(item)


def read_lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file, each with its number, counted from ``start``.

    Args:
        path: the file.
        start: byte offset to start from.

    Raises:
        ValueError: names a line that is too long.
    """
    with open(path, 'rb') as file:
        file.seek(start)
        line_number = 0
        while line := file.readline(_MAX_LINE + 1):
            line_number += 1
            if len(line) > _MAX_LINE:
                raise ValueError(f'line {line_number} is longer than {_MAX_LINE} bytes')
            yield line_number, line


@contextmanager
def at_line(line_number: int) -> Iterator[None]:
    """Turns errors caused by a line's content into a ValueError that names the line."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise ValueError(f'line {line_number}: {error.msg}, column {error.colno}') from error
    except CONTENT_ERRORS as error:
        raise ValueError(f'line {line_number}: {content_error_message(error)}') from error
