"""Weak scaling: the same batch on each of more processes, measured beside its calculation."""

import statistics
from typing import NamedTuple

from rich.table import Table
from tqdm import tqdm

from xmodal.benchmark.figures import Figures
from xmodal.benchmark.ranks import Ranks
from xmodal.benchmark.scaling import Training, gathered_bytes, gradient_bytes, state_bytes
from xmodal.benchmark.script import make_table

MB, GIB = 1e6, 2**30


class Measured(NamedTuple):
    """A training on several processes; of what differs between them, the largest.

    Attributes:
        processes: how many.
        sharded: whether by FSDP.
        seconds: of a step, in every round.
        cpu_seconds: of a step in a process, in every round.
        sent: bytes of a step by kind, see :class:`~xmodal.benchmark.traffic.Traffic`.
        rest: GiB of a process between two steps.
        peak: GiB of a process at the peak of a step.
    """

    processes: int
    sharded: bool
    seconds: list[float]
    cpu_seconds: list[float]
    sent: dict[str, float]
    rest: float
    peak: float


def measure_processes(
    processes: int, units: list[str] | None, config: str, batch_size: int, repeats: int
) -> Measured:
    """Measures a training, after a step that warms up.

    Args:
        processes: how many.
        units: classes that FSDP shards; None for DDP.
        config: file of a pre-training config.
        batch_size: pairs of a process.
        repeats: rounds that count.
    """
    ranks = Ranks(processes, units, config, batch_size)
    desc = _name(processes, units is not None)
    rounds = [ranks.call('times') for _ in tqdm(range(1 + repeats), desc=desc)][1:]
    seconds, cpu_seconds = (
        [max(of_rank[place] for of_rank in times) for times in rounds] for place in (0, 1)
    )
    sent = ranks.call('sent')[0]  # the same in each
    ranks.close()
    # In new processes: gaps that steps leave between tensors would count.
    ranks = Ranks(processes, units, config, batch_size)
    rest, peak = map(max, zip(*ranks.call('rest_and_peak'), strict=True))
    ranks.close()
    return Measured(processes, units is not None, seconds, cpu_seconds, sent, rest, peak)


def report_processes(
    title: str, training: Training, rows: list[Measured], figures: Figures
) -> Table:
    """A table with a column for each number of processes; the same as figures.

    Args:
        title: of the table.
        training: for the calculation.
        rows: what was measured, of one process first.
        figures: get the figures.
    """
    names = [_name(row.processes, row.sharded) for row in rows]
    table = make_table(title, '', *names)
    columns = [_values(row, rows[0], training) for row in rows]
    for key, (_, unit) in columns[0].items():
        medians = (statistics.median(column[key][0]) for column in columns)
        table.add_row(f'{key}, {unit}', *(f'{value:.3f}' for value in medians))
    for name, column in zip(names, columns, strict=True):
        for key, (values, unit) in column.items():
            figures.add(f'{name}: {key}', values if len(values) > 1 else values[0], unit)
    return table


def _name(processes: int, sharded: bool) -> str:
    if processes == 1:
        return '1 process'
    return f'{processes} processes, {"FSDP" if sharded else "DDP"}'


def _values(
    row: Measured, alone: Measured, training: Training
) -> dict[str, tuple[list[float], str]]:
    """What is shown of a training by name, each with its unit."""
    step, of_alone = statistics.median(row.seconds), statistics.median(alone.seconds)
    cpu, cpu_of_alone = map(statistics.median, (row.cpu_seconds, alone.cpu_seconds))
    # A sum costs twice what it costs to leave each process its part, as FSDP does.
    gradients = gradient_bytes(training.parameters, row.processes) / (1 + row.sharded)
    vectors = gathered_bytes(training, row.processes)
    state = state_bytes(training, row.processes, row.sharded) / GIB
    return {
        'step': (row.seconds, 's'),
        'step of a process': (row.cpu_seconds, 'CPU s'),
        'pairs of a process': ([training.batch / step], 'a second'),
        'efficiency': ([of_alone / step], 'x'),
        'efficiency by CPU seconds': ([cpu_of_alone / cpu], 'x'),
        'sent, gradients': ([row.sent['sums'] / MB], 'MB'),
        'gradients, calculated': ([gradients / MB], 'MB'),
        'sent, vectors': ([row.sent['vectors'] / MB], 'MB'),
        'vectors, calculated': ([vectors / MB], 'MB'),
        'sent, weights': ([row.sent['weights'] / MB], 'MB'),
        'memory at rest': ([row.rest], 'GiB'),
        'memory at the peak': ([row.peak], 'GiB'),
        'weights, gradients, moments, calculated': ([state], 'GiB'),
    }
