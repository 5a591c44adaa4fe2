"""The ways in which a training is interrupted."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from xmodal.engine.work_dir import POINTER
from xmodal.soak.damage import Damage, damage_checkpoint, damage_pointer
from xmodal.soak.process import Trap
from xmodal.soak.traps import die_at_file, limit_file_size

# Before and after a file is opened, renamed and its temporary name deleted; for two such files.
_MOMENTS = 12


class Scale(NamedTuple):
    """How long an uninterrupted training takes, and the bytes of a checkpoint."""

    seconds: float
    checkpoint: int


@dataclass(frozen=True)
class Interruption:
    """One of them, at a moment.

    Attributes:
        text: what happens, in words.
        statuses: with which the process may end.
        signal: sent from outside ``delay`` seconds after the start; 0 for none.
        trap: set in the process before it trains.
        damage: done to the work dir afterwards; returns None where nothing can be damaged yet.
    """

    text: str
    statuses: tuple[int, ...]
    signal: int = 0
    delay: float = 0
    trap: Trap | None = None
    damage: Callable[[Path, Random], Damage | None] | None = None


NOTHING = Interruption('', ())


def _signal(number: int, statuses: tuple[int, ...], random: Random, scale: Scale) -> Interruption:
    delay = random.uniform(0, scale.seconds)
    return Interruption(f'after {delay:.1f} s', statuses, number, delay)


def _kill_at(word: str, random: Random, scale: Scale) -> Interruption:
    moment = random.randint(1, _MOMENTS)
    trap = partial(die_at_file, word, moment)
    return Interruption(f'at change {moment} of a file', (-signal.SIGKILL,), trap=trap)


def _fill(is_deadly: bool, random: Random, scale: Scale) -> Interruption:
    size = int(random.uniform(0.3, 0.99) * scale.checkpoint)
    # An error is explained, and the status is 2.
    statuses = (-signal.SIGXFSZ,) if is_deadly else (2,)
    trap = partial(limit_file_size, size, is_deadly)
    return Interruption(f'at byte {size} of a file', statuses, trap=trap)


def _damage(
    damage: Callable[[Path, Random], Damage | None], random: Random, scale: Scale
) -> Interruption:
    delay = random.uniform(0.3, 1) * scale.seconds
    return Interruption(
        f'killed after {delay:.1f} s', (-signal.SIGKILL,), signal.SIGKILL, delay, damage=damage
    )


#: How each kind of interruption is drawn.
KINDS: dict[str, Callable[[Random, Scale], Interruption]] = {
    'kill -9': partial(_signal, signal.SIGKILL, (-signal.SIGKILL,)),
    # Before the training has begun, SIGTERM ends the process as any other.
    'SIGTERM': partial(_signal, signal.SIGTERM, (0, -signal.SIGTERM)),
    'SIGINT (Ctrl-C)': partial(_signal, signal.SIGINT, (130, -signal.SIGINT)),
    'kill -9 at last_checkpoint': partial(_kill_at, POINTER),
    'kill -9 at a checkpoint': partial(_kill_at, '.pth'),
    'kill in the middle of a write': partial(_fill, True),
    'full disk': partial(_fill, False),
    'damaged checkpoint': partial(_damage, damage_checkpoint),
    'damaged last_checkpoint': partial(_damage, damage_pointer),
}
