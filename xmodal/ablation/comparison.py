"""The rows of a table against one of them, and the verdicts."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rich.table import Table as RichTable

from xmodal.ablation.paired import LEVEL, paired_difference
from xmodal.ablation.plan import Plan
from xmodal.ablation.printing import markdown_lines, wide_console
from xmodal.ablation.table import Column, Row
from xmodal.ablation.verdict import Verdict, judge
from xmodal.errors import ConfigError
from xmodal.evaluation.queries import Queries, read_queries

HEADINGS = ('', 'figure', 'difference', '95 % interval', 'detectable', 'seeds', 'verdict')


class Comparison(NamedTuple):
    """A cell of a table against that of the reference.

    Attributes:
        row: the row.
        column: the column.
        verdict: the verdict; None where there is none.
        reason: why there is none.
    """

    row: Row
    column: Column
    verdict: Verdict | None
    reason: str = ''

    @property
    def is_settled(self) -> bool:
        """Whether more seeds change nothing: decided, or impossible to compare."""
        return self.verdict is None or self.verdict.is_decided

    @property
    def cells(self) -> list[str]:
        """The line to print, under ``HEADINGS``."""
        if self.verdict is None:
            return [self.row.label, self.column.heading, *['–'] * 4, self.reason]
        difference = self.verdict.difference
        return [
            self.row.label,
            self.column.heading,
            f'{difference.mean:+.2f}',
            self.verdict.interval,
            f'{self.verdict.detectable:.2f}',
            str(len(difference.by_seed)),
            str(self.verdict),
        ]


def reference_row(plan: Plan, name: str | None = None) -> Row:
    """The row that the others are compared with: by its name, or the method, or the first one.

    Raises:
        ConfigError: when the table shows no such row.
    """
    rows = {row.name: row for row in plan.table.rows}
    if name is None:
        method = plan.table.reference
        return rows.get(method.name if method else '', plan.table.rows[0])
    if name not in rows:
        raise ConfigError(f"--compare: no row '{name}' here; there are {', '.join(rows)}")
    return rows[name]


def compare(
    plan: Plan,
    reference: Row,
    columns: Sequence[Column],
    margin: float,
    level: float = LEVEL,
    later: Sequence[tuple[int, float]] = (),
) -> list[Comparison]:
    """Compares all other rows with the reference, by the seeds that both have been tested with.

    Args:
        plan: the runs.
        reference: one of its rows.
        columns: of the table.
        margin: points within which rows are equivalent.
        level: share of intervals that miss the true difference.
        later: looks that are still to come, each a number of seeds and its level.
    """
    return [
        compare_cell(plan, row, reference, column, margin, level, later)
        for column in columns
        for row in plan.table.rows
        if row is not reference
    ]


def compare_cell(
    plan: Plan,
    row: Row,
    reference: Row,
    column: Column,
    margin: float,
    level: float,
    later: Sequence[tuple[int, float]],
) -> Comparison:
    """One row and column against the reference; the rest as :func:`compare`."""
    pairs = list(zip(plan.runs_of(row, column), plan.runs_of(reference, column), strict=True))
    if all(ours is theirs for ours, theirs in pairs):
        return Comparison(row, column, None, 'the same runs: equal configs')
    measured = [pair for pair in pairs if all(run.metrics_file.is_file() for run in pair)]
    if not measured:
        return Comparison(row, column, None, 'no seed that both rows were tested with')
    lacking = [run for pair in measured for run in pair if not run.queries_file.is_file()]
    if lacking:
        return Comparison(
            row,
            column,
            None,
            f'{lacking[0].folder} has metrics, but no {lacking[0].queries_file.name}: delete its '
            f'{lacking[0].metrics_file.name}, and the same command tests again',
        )
    rows, references = zip(
        *[[_queries(run.queries_file) for run in pair] for pair in measured], strict=True
    )
    try:
        difference = paired_difference(rows, references, column.metrics)
    except ValueError as error:
        return Comparison(row, column, None, str(error))
    return Comparison(row, column, judge(difference, margin, level, later))


def _queries(file: Path) -> Queries:
    return _queries_at(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=128)
def _queries_at(file: Path, changed: int) -> Queries:
    """The queries of a file as of its last change: each column and each look asks for them."""
    return read_queries(file)


def print_comparisons(comparisons: list[Comparison], reference: Row) -> None:
    """Prints the verdicts as a table."""
    table = RichTable(title=f'Against {reference.label}, query by query, in points')
    for index, heading in enumerate(HEADINGS):
        table.add_column(heading, justify='right' if 2 <= index <= 5 else 'left')
    for comparison in comparisons:
        table.add_row(*comparison.cells)
    wide_console().print(table)


def comparisons_to_markdown(comparisons: list[Comparison], reference: Row) -> str:
    """The verdicts for a document."""
    lines = [HEADINGS, ('---', '---', '---:', '---:', '---:', '---:', '---')]
    lines += [comparison.cells for comparison in comparisons]
    rows = markdown_lines(lines)
    return '\n'.join([f'**Against {reference.label}, query by query, in points**', '', *rows])
