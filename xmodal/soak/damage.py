"""Files that go bad between two trainings."""

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from xmodal.engine.work_dir import POINTER


@dataclass
class Damage:
    """What was done to a file.

    Attributes:
        file: the file.
        text: what was done.
        former: its content before.
    """

    file: Path
    text: str
    former: bytes

    def mend(self) -> None:
        """Puts the former content back."""
        _replace(self.file, self.former)


def damage_checkpoint(folder: Path, random: Random) -> Damage | None:
    """Spoils the checkpoint that a run would go on from; None if it has none, or none is named."""
    pointer = folder / POINTER
    if not pointer.is_file():
        return None
    named = pointer.read_bytes().replace(b'\0', b'').decode(errors='replace')
    file = folder / Path(named).name
    if not file.is_file():  # a killed training has not repaired a damaged pointer yet
        return None
    name, spoil = random.choice(list(_WAYS.items()))
    former = file.read_bytes()
    _replace(file, spoil(file, former, random))
    return Damage(file, f'{file.name} {name}', former)


def damage_pointer(folder: Path, random: Random) -> Damage | None:
    """Spoils ``last_checkpoint``; None if there is none that is whole."""
    file = folder / POINTER
    former = file.read_bytes() if file.is_file() else b''
    if not former.endswith(b'.pth'):  # a killed training has not repaired the last damage yet
        return None
    contents = {
        'empty': b'',
        'with null bytes': bytes(len(former)),
        'cut short': former[: random.randrange(1, len(former) - 3)],
        'naming a missing file': b'epoch_0.pth',
    }
    name = random.choice([*contents, 'deleted'])
    if name == 'deleted':
        file.unlink()
    else:
        _replace(file, contents[name])
    return Damage(file, name, former)


def _flip_byte(file: Path, content: bytes, random: Random) -> bytes:
    """Flips a bit of what is stored in a record: between records no byte means anything."""
    with zipfile.ZipFile(file) as archive:
        records = archive.infolist()
    (record,) = random.choices(records, [record.file_size for record in records])
    # The local header has 30 bytes, and two texts whose lengths are its last two numbers.
    header = record.header_offset
    texts = sum(int.from_bytes(content[header + at : header + at + 2], 'little') for at in (26, 28))
    place = header + 30 + texts + random.randrange(record.file_size)
    flipped = content[place] ^ (1 << random.randrange(8))
    return content[:place] + bytes([flipped]) + content[place + 1 :]


def _cut(file: Path, content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content))]


def _null_end(file: Path, content: bytes, random: Random) -> bytes:
    """Null bytes at the end, as after a power failure."""
    place = random.randrange(len(content) - 1000)
    return content[:place] + bytes(len(content) - place)


_WAYS: dict[str, Callable[[Path, bytes, Random], bytes]] = {
    'with a flipped bit': _flip_byte,
    'cut short': _cut,
    'ending in null bytes': _null_end,
}


def _replace(file: Path, content: bytes) -> None:
    """Changes a file that keeps its time, as a bad disk does."""
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns) if file.exists() else None
    file.write_bytes(content)
    if times:
        os.utime(file, ns=times)
