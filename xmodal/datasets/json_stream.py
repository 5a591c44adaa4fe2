"""Reading JSON that does not fit into memory: lists, and files with one object per line."""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm

from xmodal.files import CONTENT_ERRORS, LFS_HINT, LFS_POINTER, content_error_message

_BETWEEN_ITEMS = re.compile(r'[\s,]*')


def stream_json_list(path: Path, chunk: int = 1 << 20) -> Iterator[Any]:
    """Yields the items of a file that is one JSON list, with a progress bar.

    Only a few chunks of the file are in memory at any time.

    Args:
        path: the file.
        chunk: bytes read at once; an item may be up to 16 times as long.

    Raises:
        ValueError: when the file is not a JSON list, is truncated, or continues after the list.
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
    text, position, started = '', 0, False
    with bar, open(path, 'rb') as file:
        while True:
            position = _BETWEEN_ITEMS.match(text, position).end()
            problem = 'it ends within the list'
            if position < len(text):
                if not started:
                    if text.startswith(LFS_POINTER):
                        raise ValueError(LFS_HINT)
                    if text[position] != '[':
                        raise ValueError(f'it starts with {text[position]!r}, not with a list')
                    started, position = True, position + 1
                    continue
                if text[position] == ']':
                    rest = (text[position + 1 :] + to_text.decode(file.read(chunk))).strip()
                    if rest:
                        raise ValueError(f'{rest[:20]!r} follows the list: are these two files?')
                    return
                try:
                    item, position = decoder.raw_decode(text, position)
                except json.JSONDecodeError as error:
                    # Usually the item continues in the next chunk.
                    problem = f'{error.msg}, in or before byte {file.tell()}'
                else:
                    yield item
                    continue
            content = file.read(chunk)
            if not content or len(text) - position > 16 * chunk:
                raise ValueError(problem)
            bar.update(len(content))
            text, position = text[position:] + to_text.decode(content), 0


def read_json_lines(path: Path) -> Iterator[tuple[int, dict]]:
    """Yields the objects of a file with one JSON object per line, each with its line number.

    Raises:
        ValueError: names the line that is not a JSON object.
    """
    with open(path, 'rb') as lines:
        for line_number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            with at_line(line_number):
                if line.startswith(LFS_POINTER.encode()):
                    raise ValueError(LFS_HINT)
                item = json.loads(line)  # from bytes: line 1 may begin with a byte order mark
                if not isinstance(item, dict):
                    raise ValueError(f'it is {str(item)[:40]}, not an object')
            yield line_number, item


@contextmanager
def at_line(line_number: int) -> Iterator[None]:
    """Turns errors caused by a line's content into a ValueError that names the line."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise ValueError(f'line {line_number}: {error.msg}, column {error.colno}') from error
    except CONTENT_ERRORS as error:
        raise ValueError(f'line {line_number}: {content_error_message(error)}') from error
