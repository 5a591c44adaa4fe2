"""Reading text and JSON with errors that name the file, and writing files complete or not at all.

Every file of text is read here: bytes become text, text becomes JSON; ``xmodal.fields`` checks what
the JSON has in its fields.
"""

import csv
import json
import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from operator import methodcaller
from pathlib import Path
from typing import Any, TextIO
from zipfile import BadZipFile

from filelock import FileLock, Timeout

from xmodal.errors import FileError
from xmodal.expansion import require_json_fits

LFS_POINTER = 'version https://git-lfs'
LFS_HINT = 'it is a Git LFS pointer: get the file itself with `git lfs pull` where it was cloned'
#: What separates the cells of a table, by the suffix of its name.
SEPARATORS = {'.csv': ',', '.tsv': '\t'}
#: What reading unknown content may raise.
CONTENT_ERRORS = (
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
    ArithmeticError,
    RecursionError,
    EOFError,
    csv.Error,
    BadZipFile,
)
_MAX_MESSAGE = 500  # characters: a value of a file may have any length
_MAX_BYTES = 1 << 32  # more than any annotation file that is read at once; GQA's are the largest
_MAX_TEXT = 1 << 25  # more than any list of names or words, whose items are small


def content_error_message(error: Exception) -> str:
    """What is wrong with a file's content, from one of ``CONTENT_ERRORS``."""
    if isinstance(error, UnicodeDecodeError):
        return f'it is not UTF-8: {decode_error_message(error)}'
    message = f'key {error} is missing' if isinstance(error, KeyError) else str(error)
    return message if len(message) <= _MAX_MESSAGE else f'{message[:_MAX_MESSAGE]}…'


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


def read_explained(
    read: Callable[[], Iterable[Any]], file: str | Path, layout: str, reader: str, noun: str
) -> Iterator[Any]:
    """Yields what ``read`` does; errors name file, reader, progress and the expected layout."""
    num_read = 0
    with explain_errors(file, layout, lambda: f' by {reader} after {num_read} {noun}'):
        for item in read():
            yield item
            num_read += 1


def reads(layout: str) -> Callable[[Callable], Callable]:
    """Makes a function that reads the file of its first argument raise :class:`FileError`.

    Args:
        layout: that the file should have.
    """

    def decorate(read: Callable) -> Callable:
        @wraps(read)
        def reading(file: str | Path, *args, **kwargs) -> Any:
            with explain_errors(file, layout):
                return read(file, *args, **kwargs)

        @wraps(read)
        def yielding(file: str | Path, *args, **kwargs) -> Iterator:
            with explain_errors(file, layout):
                yield from read(file, *args, **kwargs)

        return yielding if isgeneratorfunction(read) else reading

    return decorate


def read_text(file: str | Path, max_bytes: int = _MAX_TEXT) -> str:
    """The content of a UTF-8 file, which may begin with a byte order mark.

    Raises:
        FileError: when it is not UTF-8, is very long, or no regular file: a pipe would wait for its
            writer, and a device may have no end.
        FileNotFoundError: when it does not exist.
    """
    require_regular(file, max_bytes)
    try:
        return Path(file).read_bytes().decode('utf-8-sig')
    except UnicodeDecodeError as error:
        raise FileError(f'{file} is not UTF-8: {decode_error_message(error)}') from error


def require_regular(file: str | Path, max_bytes: int) -> None:
    """Refuses what is no regular file, or a very long one."""
    status = Path(file).stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f'{file} is no regular file')
    if status.st_size > max_bytes:
        raise FileError(f'{file} has {status.st_size} bytes, expected at most {max_bytes}')


def decode_error_message(error: UnicodeDecodeError) -> str:
    """Which byte cannot be decoded, and what the encoding may be."""
    byte = error.object[error.start]
    if error.object.startswith((b'\xff\xfe', b'\xfe\xff')):
        return 'it begins as UTF-16 does; save it as UTF-8'
    if error.object.startswith((b'\x1f\x8b', b'PK\x03\x04', b'\xfd7zXZ')):  # gzip, zip, xz
        return 'it begins as a compressed file does; unpack it'
    return f"can't decode byte 0x{byte:02x} at {error.start}; save it as UTF-8"


def read_json(file: str | Path) -> Any:
    """The content of a JSON file in UTF-8, which may begin with a byte order mark.

    Raises:
        FileError: when it is not valid JSON, or an object has a key twice, or it would fill the
            memory (:mod:`xmodal.expansion`); see :func:`read_text`.
    """
    require_regular(file, _MAX_BYTES)
    require_json_fits(Path(file))
    text = read_text(file, _MAX_BYTES)
    try:
        return decode_json(text)
    except (ValueError, RecursionError) as error:  # lists in lists, thousands deep
        is_pointer = text.startswith(LFS_POINTER)
        raise FileError(f'{file} is not valid JSON: {LFS_HINT if is_pointer else error}') from error


def _as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; of two values of one key the first would be lost without a word."""
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f'the key {next(k for k in keys if keys.count(k) > 1)!r} occurs twice')
    return content


JSON_DECODER = json.JSONDecoder(object_pairs_hook=_as_dict)
decode_json = JSON_DECODER.decode


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
        # While it is held: after that the name could be that of the next process's lock.
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


@contextmanager
def name_in_errors(path: str | Path) -> Iterator[None]:
    """Names a path in errors of the system that do not, as of a disk that is full."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def atomic_write(file: Path) -> Iterator[Path]:
    """A temporary path in the same folder; it replaces the file at the end. Creates the folder.

    The content is on the disk before it has the name, so that a crash leaves no empty file.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    writer = f'{socket.gethostname()}.{os.getpid()}'
    unfinished = file.with_name(f'.{file.name}.{writer}.unfinished')
    try:
        with name_in_errors(file):
            yield unfinished
            with open(unfinished, 'rb') as written:
                os.fsync(written.fileno())
            unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def atomic_open(file: Path) -> Iterator[TextIO]:
    """Opens a text file for writing that will be complete or absent. Creates its folder."""
    with atomic_write(file) as path, open(path, 'w', encoding='utf-8') as output:
        yield output


def write_json(file: Path, content: object, indent: int | None = None) -> None:
    """Writes a JSON file that is complete or absent; numbers may be NumPy's or PyTorch's."""
    with atomic_open(file) as output:
        output.write(json.dumps(content, indent=indent, default=methodcaller('tolist')))
