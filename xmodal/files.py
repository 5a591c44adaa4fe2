"""Files that are new, and files that are whole or not there."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def require_new(option: str, file: str | Path) -> None:
    """Refuses a file that is there, before the work that would end in it.

    Raises:
        FileExistsError: names the option that gave the file.
    """
    if Path(file).exists():
        raise FileExistsError(
            f'{option}={file} is there already: move it away or give another name'
        )


@contextmanager
def open_whole(file: Path) -> Iterator[TextIO]:
    """Opens a file for writing beside its place and moves it there at the end; makes its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f'.{file.name}.unfinished')
    try:
        with open(unfinished, 'w', encoding='utf-8') as output:
            yield output
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def write_json(file: Path, content: object, indent: int | None = None) -> None:
    """Writes a JSON file that is whole or not there."""
    with open_whole(file) as output:
        output.write(json.dumps(content, indent=indent))
