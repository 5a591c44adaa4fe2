"""Reading JSON that is too large to hold: lists, and one object a line."""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm

from xmodal.files import CONTENT_ERRORS, LFS_HINT, LFS_POINTER, describe

_BETWEEN_ITEMS = re.compile(r'[\s,]*')


def stream_json_list(path: Path, chunk: int = 1 << 20) -> Iterator[Any]:
    """Yields the items of a file that is one JSON list, with a progress bar.

    At no time more than a few chunks of the file are in memory.

    Args:
        path: the file.
        chunk: bytes read at once; an item may be up to 16 times as long.

    Raises:
        ValueError: when the file is no JSON list or breaks off.
    """
    decoder, to_text = json.JSONDecoder(), codecs.getincrementaldecoder('utf-8-sig')()
    bar = tqdm(
        total=path.stat().st_size,
        desc=f'indexing {path.name}',
        unit='B',
        unit_scale=True,
        leave=False,
        delay=1,
    )
    text, place, started = '', 0, False
    with bar, open(path, 'rb') as file:
        while True:
            place = _BETWEEN_ITEMS.match(text, place).end()
            problem = 'it ends within the list'
            if place < len(text):
                if not started:
                    if text.startswith(LFS_POINTER):
                        raise ValueError(LFS_HINT)
                    if text[place] != '[':
                        raise ValueError(f'it starts with {text[place]!r}, not with a list')
                    started, place = True, place + 1
                    continue
                if text[place] == ']':
                    return
                try:
                    item, place = decoder.raw_decode(text, place)
                except json.JSONDecodeError as error:
                    # As a rule the item goes on in the next chunk.
                    problem = f'{error.msg}, in or before byte {file.tell()}'
                else:
                    yield item
                    continue
            content = file.read(chunk)
            if not content or len(text) - place > 16 * chunk:
                raise ValueError(problem)
            bar.update(len(content))
            text, place = text[place:] + to_text.decode(content), 0


def read_json_lines(path: Path) -> Iterator[tuple[int, dict]]:
    """Yields the objects of a file with one JSON object a line, each with the line's number.

    Raises:
        ValueError: names the line that is none.
    """
    with open(path, 'rb') as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            with at_line(number):
                if line.startswith(LFS_POINTER.encode()):
                    raise ValueError(LFS_HINT)
                item = json.loads(line)  # of bytes: the first may begin with a byte order mark
                if not isinstance(item, dict):
                    raise ValueError(f'it is {str(item)[:40]}, not an object')
            yield number, item


@contextmanager
def at_line(number: int) -> Iterator[None]:
    """Errors that a line's content causes, as ValueError that names the line."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise ValueError(f'line {number}: {error.msg}, column {error.colno}') from error
    except CONTENT_ERRORS as error:
        raise ValueError(f'line {number}: {describe(error)}') from error
