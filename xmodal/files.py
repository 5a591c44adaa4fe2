"""Files that are new, files that are whole or not there, and files that can not be read."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from filelock import FileLock, Timeout

LFS_POINTER = 'version https://git-lfs'
LFS_HINT = 'it is a pointer of Git LFS: get the file itself, by `git lfs pull` where it was cloned'
#: What reading of an unknown content raises.
CONTENT_ERRORS = (LookupError, TypeError, AttributeError, ValueError)


class FileError(ValueError):
    """A file that can not be read; the message names it."""


def describe(error: Exception) -> str:
    """What is wrong with a content, from one of ``CONTENT_ERRORS``."""
    return f'key {error} is missing' if isinstance(error, KeyError) else str(error)


@contextmanager
def explain_errors(
    file: str | Path, expected: str, place: Callable[[], str] = str
) -> Iterator[None]:
    """Errors that a file's content causes, as one that names file, place and layout.

    Args:
        file: what is read within.
        expected: the layout that it should have.
        place: says by whom and how far it was read, when asked; an error of another file, read
            within, stays as it is.

    Raises:
        FileError: in the place of ``CONTENT_ERRORS``.
    """
    try:
        yield
    except FileError:
        raise
    except CONTENT_ERRORS as error:
        raise FileError(
            f'{file} can not be read{place()}: {describe(error)}. Expected {expected}'
        ) from error


def read_json(file: str | Path) -> Any:
    """The content of a JSON file, which may begin with a byte order mark.

    Raises:
        FileError: when it is no JSON.
    """
    content = Path(file).read_bytes()
    try:
        return json.loads(content)
    except ValueError as error:
        is_pointer = content.startswith(LFS_POINTER.encode())
        raise FileError(f'{file} is no JSON: {LFS_HINT if is_pointer else error}') from error


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
def exclusive_dir(folder: Path) -> Iterator[None]:
    """Makes a folder that no other process writes to meanwhile, as all keep to this.

    Raises:
        RuntimeError: when another process does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f'{folder}.lock')
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RuntimeError(f'{folder}: another process is writing there, wait for it') from None
    try:
        yield
    finally:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


@contextmanager
def atomic_write(file: Path) -> Iterator[Path]:
    """A path beside a file, to write to; it takes the file's place at the end. Makes the folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f'.{file.name}.unfinished')
    try:
        yield unfinished
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def atomic_open(file: Path) -> Iterator[TextIO]:
    """Opens a text file that is whole or not there; makes its folder."""
    with atomic_write(file) as path, open(path, 'w', encoding='utf-8') as output:
        yield output


def write_json(file: Path, content: object, indent: int | None = None) -> None:
    """Writes a JSON file that is whole or not there."""
    with atomic_open(file) as output:
        output.write(json.dumps(content, indent=indent))
