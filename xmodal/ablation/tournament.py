"""Every plug-in against none, in every family that takes it: the cheapest open question first."""

import time
from collections.abc import Sequence
from functools import cache
from math import inf, isnan
from pathlib import Path
from typing import NamedTuple

from rich.table import Table as RichTable

from xmodal.ablation.commands import Commands
from xmodal.ablation.comparison import HEADINGS, Comparison, compare_cell
from xmodal.ablation.declaration import find_table, read_table
from xmodal.ablation.plan import Plan
from xmodal.ablation.printing import markdown_lines, wide_console
from xmodal.ablation.remaining import format_duration, remaining_seconds, usual_seconds
from xmodal.ablation.runner import TableRunner
from xmodal.ablation.runs import Run
from xmodal.ablation.spending import look_levels
from xmodal.ablation.table import Table
from xmodal.engine.sources import read_sources
from xmodal.errors import ConfigError, no_key
from xmodal.packaged import find_file

DECLARATION = 'configs/tournament.py'
_REQUIRED = {'family', 'table', 'against'}
_KEYS = _REQUIRED | {'preset', 'rows', 'columns', 'margin', 'looks'}
_POLL = 5.0  # seconds between looks at runs that other processes hold


class Cell(NamedTuple):
    """One plug-in, one family, one figure.

    Attributes:
        family: as printed.
        name: of the table, as printed.
        table: with the family without the plug-in, the plug-in, and the figure's column.
        margin: points of the figure within which the two are equivalent; None for the usual ones.
        looks: numbers of seeds at which it is judged, ascending; None for those of all cells.
    """

    family: str
    name: str
    table: Table
    margin: float | None = None
    looks: tuple[int, ...] | None = None


def read_cells(file: str | Path = DECLARATION) -> list[Cell]:
    """Reads the declaration: a list ``entries`` (configs/tournament.py).

    Raises:
        ConfigError: for a missing or unknown key, table, row or column, with the known ones.
    """
    file = Path(file) if Path(file).is_file() else find_file(str(file))
    entries = read_sources(str(file)).to_dict().get('entries')
    if not entries:
        raise ConfigError(f'{file}: no list `entries`; see {DECLARATION}')
    cells = []
    for number, entry in enumerate(entries):
        where = f'{file}: entries[{number}]'
        if unknown := entry.keys() - _KEYS:
            raise ConfigError(f'{where} {no_key(min(unknown), sorted(_KEYS))}')
        if missing := _REQUIRED - entry.keys():
            raise ConfigError(f"{where}: the key '{min(missing)}' is missing")
        looks = entry.get('looks')
        counts = {look for look in looks or () if isinstance(look, int) and look > 1}
        if looks is not None and (not looks or looks != sorted(counts)):
            raise ConfigError(f'{where}: looks={looks!r}; expected ascending numbers from 2 on')
        table = read_table(find_table(entry['table']), entry.get('preset'))
        rows = {row.name: row for row in table.rows}
        columns = {column.heading: column for column in table.columns}
        names = entry.get('rows') or [name for name in rows if name != entry['against']]
        headings = entry.get('columns') or list(columns)
        for name, known in (
            *((name, rows) for name in [entry['against'], *names]),
            *((heading, columns) for heading in headings),
        ):
            if name not in known:
                raise ConfigError(f"{where}: no '{name}' in {entry['table']}: {', '.join(known)}")
        cells += [
            Cell(
                entry['family'],
                entry['table'],
                table.part([rows[entry['against']], rows[name]], [columns[heading]]),
                entry.get('margin'),
                looks and tuple(looks),
            )
            for heading in headings
            for name in names
        ]
    return cells


class Tournament:
    """Adds seeds to the open cell whose next look costs least, until all are decided.

    The rule of the looks is that of ``--until-decided``: all looks at a cell together err in 5 %
    at most. Runs are those of the tables and are shared with them; the same command goes on.

    Args:
        cells: of :func:`read_cells`.
        looks: numbers of seeds, ascending; the last one is the most there will be. Or a cell's own.
        root: folder of all tables' runs.
        commands: how to call the tools.
        margin: points within which a plug-in is equivalent to none, where the cell says nothing.
        results: of :class:`Plan`.

    Attributes:
        found: the last comparison of each cell; None before its first look.
        open: indices of the cells that are not decided.
        failed: runs whose process failed; cells that need one of them are not open any more.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        looks: Sequence[int],
        root: Path,
        commands: Commands,
        margin: float,
        results: Path | None = None,
    ) -> None:
        self.cells = list(cells)
        self.root, self.results = root, results
        self.commands, self.margin = commands, margin
        self._looks = [cell.looks or tuple(looks) for cell in self.cells]
        self.found: list[Comparison | None] = [None] * len(self.cells)
        self.failed: list[Run] = []
        self.open = set(range(len(self.cells)))
        self._look = [0] * len(self.cells)  # the next one of each cell, or its last
        self._plans: dict[tuple[int, int], Plan] = {}

    def look(self) -> None:
        """Looks at what is there, without any training."""
        for index in sorted(self.open):
            while index in self.open and not self._left(index):
                self._judge(index)

    def run(self) -> None:
        """Runs until all cells are decided, runs fail, a signal arrives, or seeds run out."""
        self.look()
        while self.open:
            for index in sorted(self.open, key=self.costs().get):
                if not self._fits(index):
                    continue
                before = self._left(index)
                runner = TableRunner(self.plan(index), self.commands, waits=False)
                runner.run()
                self.failed += runner.failed
                if runner.stopping:
                    return
                if runner.failed or self._left(index) != before:
                    break
            else:  # other processes hold all that is left
                time.sleep(_POLL)
            broken = {run.folder for run in self.failed}
            self.open = {index for index in self.open if not broken & self._folders(index)}
            self.look()

    def plan(self, index: int) -> Plan:
        """The runs of a cell up to its next look, or its last one."""
        key = index, self._looks[index][self._look[index]]
        if key not in self._plans:
            self._plans[key] = Plan(self.cells[index].table, key[1], self.root, self.results)
        return self._plans[key]

    def costs(self) -> dict[int, float]:
        """Seconds that each open cell's next look takes; infinite where nothing like it was run."""
        usual = cache(self._usual)
        tables = {index: self.cells[index].table for index in self.open}
        costs = {i: remaining_seconds(self._left(i), usual(t.group)) for i, t in tables.items()}
        return {index: inf if isnan(cost) else cost for index, cost in costs.items()}

    def _folders(self, index: int) -> set[Path]:
        return {run.folder for run in self.plan(index).runs}

    def _left(self, index: int) -> list[Run]:
        return [run for run in self.plan(index).runs if not run.is_done]

    def _usual(self, group: str) -> dict[tuple[str, str], float]:
        """What steps took in a group of tables, whatever the plug-in."""
        same = [i for i, cell in enumerate(self.cells) if cell.table.group == group]
        return usual_seconds([run for i in same for run in self.plan(i).runs])

    def _fits(self, index: int) -> bool:
        """Closes a cell with runs of other settings, which get no verdict and are left alone."""
        plan = self.plan(index)
        try:
            for run in plan.runs:
                run.check()
        except ValueError as error:
            why = ' '.join(str(error).split())
            self.found[index] = Comparison(plan.table.rows[1], *plan.table.columns, None, why)
            self.open.remove(index)
            return False
        return True

    def _judge(self, index: int) -> None:
        """The verdict at the next look of a cell whose runs are done."""
        if not self._fits(index):
            return
        plan, look = self.plan(index), self._look[index]
        reference, row = plan.table.rows
        (column,) = plan.table.columns
        looks = self._looks[index]
        (_, level), *later = list(zip(looks, look_levels(looks), strict=True))[look:]
        margin = self.margin if self.cells[index].margin is None else self.cells[index].margin
        self.found[index] = compare_cell(plan, row, reference, column, margin, level, later)
        if self.found[index].is_settled or look + 1 == len(looks):
            self.open.remove(index)
        else:
            self._look[index] += 1

    def comparisons(self) -> list[tuple[str, Comparison]]:
        """The last comparison of each cell that has one, by table and figure."""
        return [
            (f'{cell.name}: {cell.table.columns[0].heading}', found)
            for cell, found in zip(self.cells, self.found, strict=True)
            if found
        ]

    def lines(self) -> list[list[str]]:
        """A line a cell: family, verdict, hours so far, and hours to its next look."""
        lines, costs = [], self.costs()
        for index, cell in enumerate(self.cells):
            spent = sum(sum(run.seconds().values()) for run in self.plan(index).runs)
            cost = costs.get(index, 0.0)
            ahead = 'unknown' if cost == inf else format_duration(cost) if cost else '–'
            row, (column,) = cell.table.rows[1], cell.table.columns
            unknown = [row.label, column.heading, *['–'] * 4, 'not enough seeds yet']
            cells = self.found[index].cells if self.found[index] else unknown
            lines.append([cell.family, cell.name, *cells, format_duration(spent), ahead])
        return lines


def print_tournament(tournament: Tournament, markdown: bool) -> None:
    """Prints all cells in one table."""
    headings = ['family', 'table', 'plug-in', *HEADINGS[1:], 'spent', 'next look']
    lines = tournament.lines()
    if markdown:
        print(*markdown_lines([headings, ['---'] * len(headings), *lines]), sep='\n')
        return
    table = RichTable(title='Every plug-in against none, query by query, in points')
    for heading in headings:
        table.add_column(heading)
    for line in lines:
        table.add_row(*line)
    wide_console().print(table)
