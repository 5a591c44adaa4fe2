"""Tables on a terminal, in a file and in a document."""

from collections.abc import Iterable, Sequence
from statistics import mean, stdev

from rich.console import Console


def wide_console() -> Console:
    """The console of the process; a file or a pipe gets tables at full width."""
    console = Console()
    if not console.is_terminal:
        console.width = 1000
    return console


def mean_and_deviation(values: Sequence[float]) -> str:
    """Mean ± standard deviation of a sample (n − 1), of a single value without the latter."""
    spread = f' ± {stdev(values):.1f}' if len(values) > 1 else ''
    return f'{mean(values):.1f}{spread}'


def markdown_lines(lines: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a Markdown table, from the cells of each."""
    return [f'| {" | ".join(cells)} |' for cells in lines]
