"""How the time and the memory of a step grow with a size."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from rich.table import Table

from xmodal.benchmark.figures import Figures
from xmodal.benchmark.script import make_table
from xmodal.benchmark.timing import alternate
from xmodal.benchmark.workers import Worker, call_alone


class Growth(NamedTuple):
    """A step of one size beside the step of the base size.

    Attributes:
        what: the size that differs, such as 'batch'.
        size: its value.
        base: its value in the base.
        seconds: of every round.
        of_base: seconds of the base in the same rounds.
        memory: GiB that the step needs beyond what rests between two steps.
        memory_of_base: the same of the base.
    """

    what: str
    size: int
    base: int
    seconds: list[float]
    of_base: list[float]
    memory: float
    memory_of_base: float

    @property
    def exponents(self) -> list[float]:
        """p of seconds ~ size^p, of every round: 1 is linear growth, 2 quadratic."""
        pairs = zip(self.seconds, self.of_base, strict=True)
        return [self._exponent(own / base) for own, base in pairs]

    @property
    def memory_exponent(self) -> float:
        """p of memory ~ size^p."""
        return self._exponent(self.memory / self.memory_of_base)

    def _exponent(self, ratio: float) -> float:
        return math.log(ratio) / math.log(self.size / self.base)


def measure_growth(
    build: Callable, base: Mapping[str, int], sizes: Mapping[str, Iterable[int]], repeats: int
) -> list[Growth]:
    """Measures a step at the base sizes, and with one size changed at a time.

    Each step runs in a process of its own, beside that of the base in alternating rounds.

    Args:
        build: makes a :class:`~xmodal.benchmark.workers.TrainingStep` of sizes like ``base``.
        base: the size of each kind.
        sizes: the other sizes of each kind.
        repeats: rounds that count, after a warm-up.
    """
    rounds, first = [], Worker(build, base)
    for what, values in sizes.items():
        for value in sorted(set(values) - {base[what]}):
            worker = Worker(build, {**base, what: value})
            timers = {
                'base': partial(first.call, 'own_seconds'),
                'own': partial(worker.call, 'own_seconds'),
            }
            seconds = alternate(timers, repeats, warm_up=1, desc=f'{what} {value}')
            measured = what, value, base[what], seconds['own'], seconds['base']
            worker.close()
            rounds.append((*measured, call_alone('memory', build, {**base, what: value})))
    first.close()
    of_base = call_alone('memory', build, base)
    return [Growth(*row, of_base) for row in rounds]


def report_growth(
    title: str, unit: str, parts: Mapping[str, list[Growth]], figures: Figures
) -> Table:
    """A table with the base of each part and a row for every other size; the same as figures.

    Args:
        title: of the table.
        unit: of the seconds: 's' or 'CPU s'.
        parts: by name of a step, what was measured.
        figures: get the figures.
    """
    headings = f'step|size|{unit}|from - to|exponent|GiB|exponent'.split('|')
    table = make_table(title, *headings, num_text_columns=2)
    for part, rows in parts.items():
        base = [value for row in rows for value in row.of_base]
        memory = rows[0].memory_of_base
        table.add_row(part, 'base', *_spread(base), '', f'{memory:.3f}', '')
        figures.add(f'{part}, base', base, unit)
        figures.add(f'{part}, base: memory', memory, 'GiB')
        for row in rows:
            name, is_last = f'{row.what} {row.size}', row is rows[-1]
            table.add_row(
                part,
                name,
                *_spread(row.seconds),
                f'{statistics.median(row.exponents):.2f}',
                f'{row.memory:.3f}',
                f'{row.memory_exponent:.2f}',
                end_section=is_last,
            )
            key = f'{part}, {name}'
            figures.add(key, row.seconds, unit)
            figures.add(f'{key}: exponent of time', row.exponents, 'power')
            figures.add(f'{key}: memory', row.memory, 'GiB')
            figures.add(f'{key}: exponent of memory', row.memory_exponent, 'power')
    return table


def _spread(values: list[float]) -> tuple[str, str]:
    return f'{statistics.median(values):.3f}', f'{min(values):.3f} - {max(values):.3f}'
