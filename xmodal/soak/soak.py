"""Runs that are interrupted again and again, until a number of interruptions has struck."""

import os
import shutil
import time
from collections import Counter
from enum import Enum
from pathlib import Path
from random import Random

from xmodal.soak.compare import Reference
from xmodal.soak.interruptions import KINDS, NOTHING, Interruption, Scale
from xmodal.soak.process import start
from xmodal.soak.run import Ending, Run, Tool

_ATTEMPTS = 40  # for each interruption, as some come too early or too late
# Changes of the time within which signals are sent; then about three in ten come too late.
_SHORTER, _LONGER = 0.8, 1.1
NO_KIND = 'without interruption'  # the training that lets the last run end
_KEEP_ALL = 'default_hooks.checkpoint.max_keep_ckpts=-1'


class Outcome(Enum):
    """What came of an interruption."""

    IDENTICAL = 'bit-identical'
    DIFFERENT = 'different'
    STUCK = 'would not stop or resume'


class _Failure(Exception):
    """The end of a run: what came of interruptions, the present one if none, and what to read."""

    def __init__(self, outcome: Outcome, blamed: list[str], *lines: str) -> None:
        self.outcome, self.blamed, self.lines = outcome, blamed, lines


class Soak:
    """Interrupts trainings, resumes them, and compares them with one that nothing interrupts.

    Args:
        tool: what trains.
        folder: for the runs. One that ends bit-identical is deleted, another one stays.
        seed: of kinds and moments; what a process is doing at a moment differs each time.

    Attributes:
        counts: of interruptions, by their kind and what came of them.
        failures: a line for each run that did not go on as it should.
    """

    def __init__(self, tool: Tool, folder: Path, seed: int) -> None:
        self._tool, self._folder = tool, folder
        self._random = Random(seed)
        self._runs = 0
        self._run: Run | None = None
        self.counts: Counter[tuple[str, Outcome]] = Counter()
        self.failures: list[str] = []

    def train_reference(self) -> Scale:
        """Trains without interruption, and keeps all checkpoints.

        Raises:
            RuntimeError: if that fails; with what was printed.
        """
        run = self._new_run('reference')
        # An empty script: the first process waits until all imports are made.
        start(Path(os.devnull), [], run.folder / 'imports.txt').join()
        begin = time.monotonic()
        ending = run.train(self._tool.with_options(_KEEP_ALL))
        if ending.status:
            raise RuntimeError(
                f'the run without interruptions ended with {ending.status}:\n{ending.last_words}'
            )
        self._reference = Reference(run.folder)
        size = (run.folder / self._reference.last).stat().st_size
        self._scale = Scale(time.monotonic() - begin, size)
        self._limit = 60 + 10 * self._scale.seconds
        return self._scale

    def interrupt(self, count: int, kinds: list[str]) -> None:
        """Interrupts runs a number of times, by all kinds in turn, and lets the last one end.

        Raises:
            RuntimeError: when interruptions do not strike.
        """
        self._queue = [kinds[index % len(kinds)] for index in range(count)]
        self._random.shuffle(self._queue)
        begin, left = time.monotonic(), _ATTEMPTS * count
        while self._queue or self._run:
            kind = self._queue.pop(0) if self._queue else NO_KIND
            left -= kind != NO_KIND
            if left < 0:
                raise RuntimeError(f'{kind}: the trainings are too short to be interrupted so')
            if text := self._strike(kind):
                done, elapsed = count - len(self._queue), time.monotonic() - begin
                rest = f'{_clock(elapsed / done * len(self._queue))} to go' if done else 'all again'
                print(f'{done:4}/{count}  {_clock(elapsed)}, {rest}  {text}')
            elif kind != NO_KIND:
                self._queue.append(kind)

    def _strike(self, kind: str) -> str | None:
        """Trains once; returns what happened, or None if the interruption did not strike."""
        interruption = KINDS[kind](self._random, self._scale) if kind in KINDS else NOTHING
        if self._run is None:
            self._runs += 1
            self._run = self._new_run(f'run_{self._runs}')
        run = self._run
        try:
            has_struck = self._train_once(run, interruption)
        except _Failure as failure:
            summary = f'{run.folder}: {failure.outcome.value}'
            print('\n'.join([summary, *failure.lines]))
            last_line = failure.lines[-1].strip().rsplit('\n', 1)[-1]
            self.failures.append(f'{summary}: {failure.lines[0]} {last_line}')
            self._run = None
            self.counts.update((name, failure.outcome) for name in failure.blamed or [kind])
            # Nothing is known of those that nothing was compared after.
            self._queue += (Counter(run.pending) - Counter(failure.blamed)).elements()
            return None if failure.blamed else f'{kind} {interruption.text}'
        if not has_struck:
            return None
        run.pending.append(kind)
        if interruption.damage:
            return f'{kind}: {run.damage.text}'
        return f'{kind} {interruption.text}; at {run.position or "the beginning"}'

    def _train_once(self, run: Run, interruption: Interruption) -> bool:
        """Trains until it is interrupted or at its end, and checks; whether it was interrupted.

        Raises:
            _Failure: if it could not go on, or became another run.
        """
        ending = run.train(self._tool, interruption, self._limit)
        if self._refuses_damage(run, ending):
            return False
        expected = {0, *interruption.statuses}
        text = f'it ended with {ending.status}, expected {" or ".join(map(str, expected))}:'
        is_wrong = ending.status not in expected
        if is_wrong and not (ending.went_on or ending.is_struck):
            raise _Failure(Outcome.STUCK, run.pending[-1:], text, ending.last_words)
        self._compare(run)
        if interruption.signal:  # resumed trainings are shorter, and a machine's speed changes
            factor = _LONGER if ending.is_struck else _SHORTER
            self._scale = self._scale._replace(seconds=factor * self._scale.seconds)
        if ending.status == 0 and run.position == self._reference.last:
            self._finish(run)
            return False
        if ending.status not in interruption.statuses:
            raise _Failure(Outcome.STUCK, [], text, ending.last_words)
        if interruption.damage:
            run.damage = interruption.damage(run.folder, self._random)
            return run.damage is not None
        return True

    def _refuses_damage(self, run: Run, ending: Ending) -> bool:
        """Whether a training ended because nothing whole was left, which is then mended.

        Raises:
            _Failure: if it goes on without a word about the file that is damaged.
        """
        if run.damage is None:
            return False
        name = run.damage.file.name
        lines = [line for line in ending.printed.splitlines() if name in line]
        if ending.status == 2 and any('has no whole checkpoint' in line for line in lines):
            run.damage.mend()
            run.damage = None
            return True
        if any(line.startswith('warning: ') for line in lines):
            run.damage = None
        elif ending.went_on:
            text = f'it went on without a word: {run.damage.text}'
            raise _Failure(Outcome.DIFFERENT, run.pending[-1:], text)
        return False

    def _compare(self, run: Run) -> None:
        """Compares the checkpoints that are new."""
        times = {path.name: path.stat().st_mtime_ns for path in run.folder.glob('*.pth')}
        new = [
            name
            for name, time_ns in times.items()
            if run.compared.get(name) != time_ns and self._reference.has(name)
        ]
        run.compared = times
        for name in new:
            if wrong := self._reference.compare_checkpoint(run.folder / name):
                raise _Failure(Outcome.DIFFERENT, run.pending, name, *wrong)
        if new:
            self._settle(run)

    def _finish(self, run: Run) -> None:
        if wrong := self._reference.compare_end(run.folder):
            raise _Failure(Outcome.DIFFERENT, run.pending, *wrong)
        self._settle(run)
        shutil.rmtree(run.folder)
        self._run = None

    def _settle(self, run: Run) -> None:
        self.counts.update((kind, Outcome.IDENTICAL) for kind in run.pending)
        run.pending.clear()

    def _new_run(self, name: str) -> Run:
        folder = self._folder / name
        folder.mkdir(parents=True)
        return Run(folder)


def _clock(seconds: float) -> str:
    return f'{int(seconds // 60)}:{int(seconds % 60):02}'
