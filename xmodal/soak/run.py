"""A run that is trained in several goes."""

import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from xmodal.engine.work_dir import POINTER
from xmodal.soak.damage import Damage
from xmodal.soak.interruptions import NOTHING, Interruption
from xmodal.soak.process import send, start


class Tool(NamedTuple):
    """What trains.

    Attributes:
        script: ``tools/train.py``.
        config: what it trains.
        options: its ``--cfg-options``.
    """

    script: Path
    config: str
    options: list[str]

    def with_options(self, *options: str) -> 'Tool':
        """The same with more options."""
        return self._replace(options=[*self.options, *options])


class Ending(NamedTuple):
    """How a training ended.

    Attributes:
        status: of the process, negative for a signal; None if it did not end within its limit.
        printed: what it printed.
        is_struck: whether it got the signal of its interruption.
    """

    status: int | None
    printed: str
    is_struck: bool

    @property
    def last_words(self) -> str:
        """The end of what it printed."""
        return self.printed[-3000:]

    @property
    def went_on(self) -> bool:
        """Whether it got so far that it trained, or had read what it goes on from."""
        return 'resumed epoch: ' in self.printed or 'Epoch(train)' in self.printed


@dataclass
class Run:
    """A run and its interruptions.

    Attributes:
        folder: its work dir.
        pending: the kinds of the interruptions since a checkpoint was compared.
        damage: of which the next training must speak.
        compared: the checkpoints that were compared, and their times.
        trainings: their number.
    """

    folder: Path
    pending: list[str] = field(default_factory=list)
    damage: Damage | None = None
    compared: dict[str, int] = field(default_factory=dict)
    trainings: int = 0

    @property
    def position(self) -> str:
        """The checkpoint that ``last_checkpoint`` names."""
        pointer = self.folder / POINTER
        return Path(pointer.read_text(errors='replace')).name if pointer.is_file() else ''

    def train(
        self, tool: Tool, interruption: Interruption = NOTHING, limit: float | None = None
    ) -> 'Ending':
        """Trains, or resumes after the first time, and waits for the end.

        Args:
            tool: what trains.
            interruption: what ends it.
            limit: seconds after which it is ended.

        """
        output = self.folder / f'training_{self.trainings}.txt'
        arguments = [tool.config, '--work-dir', str(self.folder)]
        arguments += ['--resume', 'auto'] * bool(self.trainings)
        arguments += ['--cfg-options', *tool.options]
        self.trainings += 1
        output.touch()  # a signal may come before the process opens it
        process = start(tool.script, arguments, output, interruption.trap)
        is_struck = False
        try:
            if interruption.signal:
                process.join(interruption.delay)
                is_struck = process.is_alive()
                if is_struck:
                    send(process, interruption.signal)
            process.join(limit)
            status = process.exitcode
        finally:
            send(process, signal.SIGKILL)
            process.join()
        return Ending(status, output.read_text(errors='replace'), is_struck)
