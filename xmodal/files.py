"""Reading JSON with errors that name the file, and writing files that are complete or absent."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from filelock import FileLock, Timeout

LFS_POINTER = 'version https://git-lfs'
LFS_HINT = 'it is a Git LFS pointer: get the file itself with `git lfs pull` where it was cloned'
#: What reading unknown content may raise.
CONTENT_ERRORS = (LookupError, TypeError, AttributeError, ValueError, RecursionError)


class FileError(ValueError):
    """A file that cannot be read; the message names it."""


def content_error_message(error: Exception) -> str:
    """What is wrong with a file's content, from one of ``CONTENT_ERRORS``."""
    return f'key {error} is missing' if isinstance(error, KeyError) else str(error)


@contextmanager
def explain_errors(
    file: str | Path, expected: str, progress: Callable[[], str] = str
) -> Iterator[None]:
    """Turns errors caused by a file's content into one that names the file and its layout.

    Args:
        file: the file that is read within.
        expected: the layout that it should have.
        progress: called when an error occurs; says by whom and how far the file was read.

    Raises:
        FileError: in place of ``CONTENT_ERRORS``. A ``FileError`` about another file, raised
            within, is passed on unchanged.
    """
    try:
        yield
    except FileError:
        raise
    except CONTENT_ERRORS as error:
        raise FileError(
            f'{file} cannot be read{progress()}: {content_error_message(error)}. '
            f'Expected {expected}'
        ) from error


def read_json(file: str | Path) -> Any:
    """The content of a JSON file, which may begin with a byte order mark.

    Raises:
        FileError: when it is not valid JSON.
    """
    content = Path(file).read_bytes()
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:  # lists in lists, thousands deep
        is_pointer = content.startswith(LFS_POINTER.encode())
        raise FileError(f'{file} is not valid JSON: {LFS_HINT if is_pointer else error}') from error


def require_new(option: str, file: str | Path) -> None:
    """Refuses an output file that already exists, before the work that would write it.

    Raises:
        FileExistsError: names the option that gave the file.
    """
    if Path(file).exists():
        raise FileExistsError(f'{option}={file} already exists: move it away or give another name')


@contextmanager
def exclusive_dir(folder: Path) -> Iterator[None]:
    """Creates a folder and locks it against other processes that use this function.

    Raises:
        RuntimeError: when another process holds the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f'{folder}.lock')
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RuntimeError(f'{folder}: another process is writing to it, wait for it') from None
    try:
        yield
    finally:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


@contextmanager
def atomic_write(file: Path) -> Iterator[Path]:
    """A temporary path in the same folder; it replaces the file at the end. Creates the folder.

    The content is on the disk before it has the name, so that a crash leaves no empty file.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f'.{file.name}.unfinished')
    try:
        yield unfinished
        with open(unfinished, 'rb') as written:
            os.fsync(written.fileno())
        unfinished.replace(file)
    except OSError as error:
        error.filename = error.filename or str(file)  # a full disk does not name the file
        raise
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def atomic_open(file: Path) -> Iterator[TextIO]:
    """Opens a text file for writing that will be complete or absent. Creates its folder."""
    with atomic_write(file) as path, open(path, 'w', encoding='utf-8') as output:
        yield output


def write_json(file: Path, content: object, indent: int | None = None) -> None:
    """Writes a JSON file that is complete or absent."""
    with atomic_open(file) as output:
        output.write(json.dumps(content, indent=indent))
