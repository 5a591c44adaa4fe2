"""Checkpoint files: their bytes are checked before they are read, and they are written whole.

A file of ``torch.save`` is a zip archive with a CRC-32 of each of its records: the pickle, and the
values of each tensor. ``torch.load`` does not compare them. Here they are, in a quarter of the time
that saving takes, and saving takes no longer.
"""

import pickletools
import re
import zipfile
from itertools import chain, islice
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from xmodal.expansion import require_pickle_fits
from xmodal.files import LFS_HINT, LFS_POINTER, FileError, atomic_write
from xmodal.packaged import ROOT

_ZIP = b'PK\x03\x04'  # the first bytes by which torch.load, too, tells an archive
# Control characters that are in no text; a pickle begins with two of them.
_BINARY = frozenset(range(9))
# Of the four pickles before the values in a file of PyTorch before 1.6. A tensor takes about thirty
# operations, and an operation up to a hundred bytes of memory.
_MAX_OPERATIONS = 2_000_000
# Checkpoints that were found whole and will be read: a large one takes a while to check.
_found_whole: set[tuple] = set()


def require_checkpoint(file: str | Path) -> None:
    """Refuses a path at which there is no file.

    Raises:
        FileNotFoundError: says what is there.
    """
    if Path(file).is_dir():
        raise FileNotFoundError(f'checkpoint {file} is a folder: give a file in it')
    if not Path(file).is_file():
        raise FileNotFoundError(f'checkpoint {file} does not exist{how_to_get(file)}')


def how_to_get(file: str | Path) -> str:
    """For the end of an error: what makes a file of weights that is not there, if it is known."""
    if '://' in str(file):
        return ': download it, and give the path of the file'
    configs = sorted((ROOT / 'configs').rglob(f'{Path(file).parent.name}.py'))
    commands = [f'`xmodal train {config.relative_to(ROOT)}`' for config in configs]
    return f': {" or ".join(commands)} makes it' if commands else ''


def expect_whole(file: str | Path) -> None:
    """Saves the next reading of a file, in which :func:`find_damage` found none, its check."""
    _found_whole.add(_identity(file))


def _identity(file: str | Path) -> tuple:
    status = Path(file).stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def find_damage(file: str | Path) -> str | None:
    """Says why the bytes of a file cannot be those of a checkpoint, or returns None.

    Files of PyTorch before 1.6 have no checksums; of these only the beginning is looked at, and how
    long their pickles are.
    """
    with open(file, 'rb') as content:
        head = content.read(256)
    if head.startswith(_ZIP):
        return _find_wrong_record(file)
    if head.startswith(LFS_POINTER.encode()):
        return LFS_HINT
    if not head.strip(b'\0'):
        return 'it begins with null bytes, as after a crash' if head else 'it is empty'
    if _BINARY.isdisjoint(head):
        beginning = head.decode(errors='replace').split('\n')[0][:40]
        return f"it is a text, perhaps a web page saved in its place, that begins '{beginning}'"
    return _find_long_pickle(file)


def _find_long_pickle(file: str | Path) -> str | None:
    """Says that the pickles of a file of PyTorch before 1.6 hold more than any model's."""
    with open(file, 'rb') as content:
        operations = chain.from_iterable(pickletools.genops(content) for _ in range(4))
        try:
            count = sum(1 for _ in islice(operations, _MAX_OPERATIONS))
        except Exception:  # damaged pickles raise nearly anything; PyTorch says what is wrong
            return None
    if count < _MAX_OPERATIONS:
        return None
    return f'its pickle has more than {_MAX_OPERATIONS} operations, which would fill the memory'


def _find_wrong_record(file: str | Path) -> str | None:
    """Says what is wrong with a zip archive."""
    try:
        with zipfile.ZipFile(file) as archive:
            for record in archive.infolist():
                if record.compress_type != zipfile.ZIP_STORED:
                    return f'{record.filename} in it is compressed, which torch.save never does'
            misread = (info.filename for info in archive.infolist() if _is_misread(info))
            if wrong := archive.testzip() or next(misread, None):
                return f'it is damaged: the checksum of its record {wrong} is wrong'
            for name in archive.namelist():
                if name.endswith('.pkl'):
                    require_pickle_fits(file, archive.read(name))
    except FileError as error:
        return str(error)
    except Exception as error:  # damaged archives raise nearly anything, OSError included
        return f'it is cut short or damaged ({error})'
    return None


def _is_misread(record: zipfile.ZipInfo) -> bool:
    """Whether PyTorch would read other bytes than those whose checksum is right.

    It goes by the other of two sizes, and reads nothing of a record that is marked as a folder.
    """
    return record.compress_size != record.file_size or bool(record.external_attr & 0x10)


def read_checkpoint(file: str | Path) -> dict:
    """Reads a checkpoint, or a file of safetensors, to the CPU.

    Raises:
        FileNotFoundError: if the file is missing.
        FileError: if it is damaged, another kind of file, or holds more than data.
    """
    require_checkpoint(file)
    if Path(file).suffix == '.safetensors':
        return _read_safetensors(file)
    if (identity := _identity(file)) in _found_whole:
        _found_whole.remove(identity)
    elif damage := find_damage(file):
        raise FileError(_unreadable(file, damage))
    try:
        content = torch.load(file, map_location='cpu', weights_only=True)
    except OSError:
        raise
    except Exception as error:  # unpickling unknown bytes raises nearly anything
        raise FileError(_unreadable(file, _reason(error))) from error
    if not isinstance(content, dict):
        raise FileError(f'{file} holds a {type(content).__name__}, expected a dict of weights')
    for key in ('state_dict', 'meta'):
        if not isinstance(content.get(key, {}), dict):
            kind = type(content[key]).__name__
            raise FileError(f"{file} has a {kind} as '{key}', expected a dict")
    if others := [name for name in content.get('state_dict', content) if not isinstance(name, str)]:
        raise FileError(f'{file} has {others[0]!r} where the name of a weight is expected')
    return content


def _read_safetensors(file: str | Path) -> dict:
    """Tensors by their names; the format holds nothing else, and knows how long it is."""
    try:
        return {'state_dict': load_file(file)}
    except SafetensorError as error:
        raise FileError(
            f'{file} ({Path(file).stat().st_size} bytes) is no file of safetensors: {error}. Is it '
            'whole? Copy or download it again'
        ) from error


def select_tensors(content: dict, wrapper: str) -> dict[str, Tensor]:
    """The tensors that a checkpoint has under a key, or at the top level where it lacks the key.

    Raises:
        ValueError: if there is something else than a dict under the key.
    """
    weights = content.get(wrapper, content)
    if not isinstance(weights, dict):
        raise ValueError(f"'{wrapper}' is a {type(weights).__name__}, expected a dict of weights")
    return {name: value for name, value in weights.items() if isinstance(value, Tensor)}


def _reason(error: Exception) -> str:
    if foreign := re.search(r'GLOBAL (\S+)', str(error)):
        return f'it holds a {foreign[1]} beside its tensors, and such objects may run code'
    return str(error).split('\n')[0] or type(error).__name__


def _unreadable(file: str | Path, reason: str) -> str:
    size = Path(file).stat().st_size
    return (
        f'{file} ({size} bytes) is no checkpoint that torch reads: {reason}. Is it whole? Copy or '
        'download it again, or take another one'
    )


def write_checkpoint(file: Path, content: dict) -> None:
    """Writes a checkpoint, complete or not at all; creates its folder."""
    with atomic_write(file) as path, open(path, 'wb') as output:
        try:
            torch.save(content, output)
        except RuntimeError as error:  # PyTorch closes its archive, which hides why writing failed
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
