"""A table's figures: measured ones and the paper's, in separate columns."""

from statistics import mean

from rich.table import Table as RichTable

from xmodal.ablation.plan import Plan
from xmodal.ablation.printing import markdown_lines, mean_and_deviation, wide_console
from xmodal.ablation.runs import Run
from xmodal.ablation.table import Column, Row

MISSING = '–'


def grid(plan: Plan) -> list[list[str]]:
    """Headings, then one line per row: measured means ± deviations, then the paper's figures.

    ``(n)`` follows a figure that has fewer seeds than the plan; '–' stands for none.
    """
    table = plan.table
    headings = ['']
    headings += [f'measured: {column.heading}' for column in table.columns]
    headings += [f'paper: {heading}' for heading in table.paper_columns]
    lines = [headings]
    for row in table.rows:
        measured = [summarize(figures(plan, row, column), plan.seeds) for column in table.columns]
        printed = row.paper or [None] * len(table.paper_columns)
        paper = [MISSING if value is None else f'{value:.1f}' for value in printed]
        lines.append([row.label, *measured, *paper])
    return lines


def figures(plan: Plan, row: Row, column: Column) -> list[float]:
    """A cell's figures, one for each seed that was measured."""
    values = (figure(run, column) for run in plan.runs_of(row, column))
    return [value for value in values if value is not None]


def figure(run: Run, column: Column) -> float | None:
    """A column's figure of one run; None before its test, or where the test did not measure it."""
    metrics = run.metrics()
    if metrics is None or not metrics.keys() >= set(column.metrics):
        return None
    return mean(metrics[name] for name in column.metrics)


def not_measured(plan: Plan) -> list[str]:
    """One line for each column that a finished test has no figure for, with what it has."""
    lines = []
    for column in plan.table.columns:
        runs = [run for row in plan.table.rows for run in plan.runs_of(row, column)]
        tested = [run for run in runs if run.metrics() is not None]
        if lacking := [run for run in tested if figure(run, column) is None]:
            folder, found = lacking[0].folder, ', '.join(sorted(lacking[0].metrics()))
            lines.append(
                f"column '{column.heading}' shows {', '.join(column.metrics)}, and {folder} has "
                + (found or 'no metric: its test set has no labels')
            )
    return lines


def summarize(values: list[float], seeds: int) -> str:
    """Mean ± standard deviation over seeds, and of how many if not of all."""
    if not values:
        return MISSING
    shown = mean_and_deviation(values)
    return shown if len(values) == seeds else f'{shown} ({len(values)})'


def caption(plan: Plan) -> str:
    """What the figures are."""
    seeds = 'one seed'
    if plan.seeds > 1:
        seeds = f'mean ± standard deviation over {plan.seeds} seeds'
    paper = '; paper: as printed there, on its own data' if plan.table.paper_columns else ''
    return f'measured: {plan.table.label}, {seeds}{paper}'


def print_grid(plan: Plan) -> None:
    """Prints the table, in parts below each other where the terminal is too narrow for it."""
    console = wide_console()
    lines = [[cell.replace(': ', '\n', 1) for cell in line] for line in grid(plan)]
    for columns in _parts(lines, console.width):
        table = RichTable(title=plan.table.title)
        for column in columns:
            table.add_column(lines[0][column], justify='right' if column else 'left', no_wrap=True)
        for line in lines[1:]:
            table.add_row(*(line[column] for column in columns))
        console.print(table)
    for line in (caption(plan), *not_measured(plan)):
        console.print(line, highlight=False, markup=False)


def _parts(lines: list[list[str]], width: int) -> list[list[int]]:
    """The columns of each part, all with the labels in column 0."""
    cells = [
        max(len(part) for cell in column for part in cell.split('\n')) + 3
        for column in zip(*lines, strict=True)
    ]
    parts = [[0]]
    for column in range(1, len(cells)):
        taken = 1 + sum(cells[i] for i in parts[-1])
        if taken + cells[column] > width and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(column)
    return parts


def to_markdown(plan: Plan) -> str:
    """The table for a document."""
    headings, *lines = grid(plan)
    ruler = ['---', *['---:'] * (len(headings) - 1)]
    rows = markdown_lines([headings, ruler, *lines])
    below = [caption(plan), *not_measured(plan)]
    return '\n'.join([f'**{plan.table.title}**', '', *rows, '', *below])
