"""Downloads that go on where they were cut, and are checked before anyone sees them."""

from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from filelock import FileLock
from tqdm import tqdm

from xmodal.hashing import file_hash

_CHUNK = 1 << 20
_TIMEOUT = 30  # seconds without a byte
_ATTEMPTS = 4
_RANGE_NOT_SATISFIABLE = 416


def once(file: Path, make: Callable[[], None]) -> Path:
    """Makes a file of the cache if it is not there; of several processes one does.

    Raises:
        PermissionError: when the cache cannot be written to.
    """
    if file.exists():  # also where nothing can be written, not even a lock
        return file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Of everyone: it stays, and the next user of a shared folder opens it for writing.
        lock = FileLock(file.with_name(f'{file.name}.lock'), mode=0o666)
        lock.acquire()
    except OSError as error:
        raise PermissionError(
            f'{file.parent} cannot be written to ({error.strerror}), and {file.name} is not there '
            'yet: name another folder by the environment variable XMODAL_HOME'
        ) from error
    try:
        if not file.exists():
            make()
    finally:
        lock.release()
    return file


def download(url: str, file: Path, sha256: str | None = None) -> Path:
    """Downloads a file of the cache once; shows progress, and resumes what was cut.

    Args:
        url: where it is.
        file: where it goes; what is there already is taken.
        sha256: of the whole file in hexadecimal digits, or None if nobody knows it.

    Raises:
        FileNotFoundError: when the server has no such file.
        ConnectionError: when the server cannot be reached, or the connection breaks again and
            again.
        PermissionError: when the cache, or what another user has left of the file, cannot be
            written to.
        ValueError: when the file has another hash.
    """
    return once(file, lambda: _download(url, file, sha256))


def _download(url: str, file: Path, sha256: str | None) -> None:
    part = file.with_name(f'{file.name}.part')
    for attempt in range(_ATTEMPTS):
        try:
            _continue(url, part)
            break
        except HTTPError as error:
            _raise_refusal(url, error)
        except PermissionError as error:  # the folder has been written to
            raise PermissionError(
                f'{error.filename} was left by a download that ended early, perhaps of another '
                f'user, and cannot be continued ({error.strerror}): delete it, or name another '
                'folder by the environment variable XMODAL_HOME'
            ) from error
        except (URLError, HTTPException, ConnectionError, TimeoutError) as error:
            size = part.stat().st_size if part.exists() else 0
            if attempt + 1 == _ATTEMPTS:
                raise ConnectionError(
                    f'{url}: {getattr(error, "reason", error)}, after {_ATTEMPTS} attempts. '
                    f'{size} bytes are kept in {part}: the next download goes on from there'
                ) from error
    found = file_hash(part)
    if sha256 and found != sha256.lower():
        size = part.stat().st_size
        part.unlink()
        raise ValueError(
            f'{url}: the {size} bytes have the SHA-256 {found}, expected {sha256}: the file was '
            'changed on its way, or by its authors. It was not kept'
        )
    part.replace(file)
    _tag_file(part).unlink(missing_ok=True)


def _continue(url: str, part: Path) -> None:
    """Downloads the rest of a file.

    Raises:
        ConnectionError: when bytes are missing at the end.
    """
    offset = part.stat().st_size if part.exists() else 0
    headers = {'User-Agent': 'xmodal'}
    if offset:
        headers['Range'] = f'bytes={offset}-'
        with suppress(FileNotFoundError):  # another file than the one that was begun comes whole
            headers['If-Range'] = _tag_file(part).read_text()
    try:
        response = urlopen(Request(url, headers=headers), timeout=_TIMEOUT)
    except HTTPError as error:
        if error.code != _RANGE_NOT_SATISFIABLE or not offset:
            raise
        part.unlink()  # longer than the file: of another one
        return _continue(url, part)
    with response:
        offset = offset if response.status == 206 else 0
        if tag := response.headers.get('ETag') or response.headers.get('Last-Modified'):
            _tag_file(part).write_text(tag)
        _write(response, part, offset, url)


def _write(response: HTTPResponse, part: Path, offset: int, url: str) -> None:
    length = response.headers.get('Content-Length')
    total = offset + int(length) if length else None
    bar = tqdm(desc=url.rsplit('/', 1)[-1], total=total, initial=offset, unit='B', unit_scale=True)
    with bar, open(part, 'ab' if offset else 'wb') as output:
        while chunk := response.read(_CHUNK):
            output.write(chunk)
            bar.update(len(chunk))
    if total is not None and part.stat().st_size < total:
        raise ConnectionError(f'the connection ended at {part.stat().st_size} of {total} bytes')


def _tag_file(part: Path) -> Path:
    """Where the server's tag of the file that a part belongs to is kept."""
    return part.with_name(f'{part.name}.tag')


def _raise_refusal(url: str, error: HTTPError) -> None:
    kind = FileNotFoundError if error.code in (404, 410) else ConnectionError
    raise kind(
        f'{url}: HTTP {error.code} {error.reason}. If its authors have moved the file, download it '
        'by hand and give its path'
    ) from error
