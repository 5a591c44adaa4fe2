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
    all looks together at 5 %. The same command comes to the same looks, so it can be stopped.

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
        for seeds, level in zip(self.looks, look_levels(self.looks), strict=True):
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
            for comparison in compare(part, self.reference, self.columns, self.margin, level):
                key = comparison.row.name, comparison.column.heading
                if key not in found or not found[key].is_settled:
                    found[key] = comparison
            self.failed = runner.failed
            if runner.failed or runner.stopping:
                break
        return list(found.values())


def _is_open(row: str, found: dict[tuple[str, str], Comparison], columns: Sequence[Column]) -> bool:
    return any(
        (row, column.heading) not in found or not found[row, column.heading].is_settled
        for column in columns
    )
