"""Seeds one at a time, until the verdicts are there."""

from collections.abc import Sequence
from pathlib import Path

from xmodal.ablation.commands import Commands
from xmodal.ablation.comparison import Comparison, compare, reference_row
from xmodal.ablation.plan import Plan
from xmodal.ablation.runner import TableRunner
from xmodal.ablation.spending import look_levels
from xmodal.ablation.table import Column, Table


class SequentialRunner:
    """Runs a table with more and more seeds, and only the rows that are undecided.

    A verdict, once there, stays. The rule for the looks (:func:`look_levels`) keeps the errors of
    all looks together below 5 %. The same command comes to the same looks, so it can be stopped.

    Args:
        table: the table.
        looks: numbers of seeds, ascending; the last one is the most there will be.
        root: folder of all tables' runs.
        commands: how to call the tools.
        reference: name of the row to compare with; None for the default.
        columns: to decide by; a row is undecided while one of them is.
        margin: points within which rows are equivalent.

    Attributes:
        plan: the whole table with the seeds so far.
        failed: runs whose process failed.
    """

    def __init__(
        self,
        table: Table,
        looks: Sequence[int],
        root: Path,
        commands: Commands,
        reference: str | None,
        columns: Sequence[Column],
        margin: float,
    ) -> None:
        self.looks, self.root, self.commands = tuple(looks), root, commands
        self.columns, self.margin = columns, margin
        self.plan = Plan(table, self.looks[0], root)
        self.reference = reference_row(self.plan, reference)
        self.failed = []

    def run(self) -> list[Comparison]:
        """Runs until all rows are decided, a run fails, a signal arrives, or seeds run out."""
        table, found = self.plan.table, {}
        later = list(zip(self.looks, look_levels(self.looks), strict=True))
        while later:
            (seeds, level), *later = later
            rows = [
                row
                for row in table.rows
                if row.name == self.reference.name or _is_open(row.name, found, self.columns)
            ]
            if len(rows) == 1:
                break
            self.plan = Plan(table, seeds, self.root)
            part = Plan(table._replace(rows=rows), seeds, self.root)
            runner = TableRunner(part, self.commands)
            runner.run()
            self._judge(part, level, later, found)
            self.failed = runner.failed
            if runner.failed or runner.stopping:
                break
        return list(found.values())

    def _judge(
        self,
        part: Plan,
        level: float,
        later: Sequence[tuple[int, float]],
        found: dict[tuple[str, str], Comparison],
    ) -> None:
        """Replaces comparisons that are open by those of a look.

        A stop or a failure leaves rows with fewer seeds than the look has. The level is not for
        these: they keep the verdict of the look before.
        """
        for new in compare(part, self.reference, self.columns, self.margin, level, later):
            key = new.row.name, new.column.heading
            if key in found and found[key].is_settled:
                continue
            if not self._is_complete(part, new):
                reason = f'fewer than the {self.looks[0]} seeds of the first look'
                found.setdefault(key, new._replace(verdict=None, reason=new.reason or reason))
            else:
                found[key] = new

    def _is_complete(self, part: Plan, comparison: Comparison) -> bool:
        """Whether row and reference were tested with all seeds of the look."""
        return all(
            run.metrics_file.is_file()
            for row in (comparison.row, self.reference)
            for run in part.runs_of(row, comparison.column)
        )


def _is_open(row: str, found: dict[tuple[str, str], Comparison], columns: Sequence[Column]) -> bool:
    return any(
        (row, column.heading) not in found or not found[row, column.heading].is_settled
        for column in columns
    )
