"""Compares the figures that are listed for the pages with results of runs (docs/figures.md)."""

import re
import runpy
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from xmodal.ablation.printing import mean_and_deviation
from xmodal.errors import ConfigError
from xmodal.files import read_json

MEASURED = 'measured: '  # before a heading, where the table has the paper's figures, too


def compare_metrics(entries: list[dict], root: Path) -> tuple[list[str], int]:
    """Compares cells with the metrics of runs, where there are as many runs as seeds.

    Returns:
        One line for each difference, and how many cells were compared.
    """
    problems, compared = [], 0
    for entry in entries:
        metrics = entry.get('metrics', {'files': {}})
        for label, pattern in metrics['files'].items():
            files = sorted(root.glob(pattern))
            if len(files) != metrics['seeds']:
                continue
            runs = [read_json(file) for file in files]
            cells = entry['figures'][label].split(' | ')
            for cell, keys in zip(cells, metrics['keys'], strict=False):
                found = ' / '.join(mean_and_deviation([run[key] for run in runs]) for key in keys)
                compared += 1
                if found != cell:
                    problems.append(f"{entry['page']}: '{label}' has {cell}, {pattern} {found}")
    return problems, compared


def compare_results(entries: list[dict]) -> tuple[list[str], int]:
    """Compares rows with what their commands print, where these only read published results.

    Returns:
        One line for each difference and each command that fails, and how many rows were compared.
    """
    problems, compared = [], 0
    by_command: dict[str, list[dict]] = {}
    for entry in entries:
        if reads_results(entry['command']):
            by_command.setdefault(entry['command'], []).append(entry)
    for command, listed in by_command.items():
        try:
            printed = print_again(command)
        except ConfigError as error:
            problems.append(str(error))
            continue
        rows = read_rows(printed)
        for entry in listed:
            compared += len(entry['figures'])
            where = f'{entry["page"]}, by `{command}`'
            problems += [f'{where}: {line}' for line in differences(rows, entry)]
        problems += sorted({line for line in printed.splitlines() if line.startswith('not taken')})
    return problems, compared


def reads_results(command: str) -> bool:
    """Whether a command makes tables of published results, and no run."""
    options = command.split()
    return 'tools/ablate.py' in options and {'--dry-run', '--results'} <= set(options)


def print_again(command: str) -> str:
    """What a command of :func:`reads_results` prints, whatever runs are in this folder.

    It runs in this process: its imports take longer than most tables.

    Raises:
        ConfigError: when it fails, with its own sentence.
    """
    without_plot = re.sub(r' --plot \S+', '', command)  # it would write a file
    _, *words = shlex.split(without_plot)
    own, output, errors = sys.argv, StringIO(), StringIO()
    with TemporaryDirectory() as root, redirect_stdout(output), redirect_stderr(errors):
        sys.argv = [part for word in words for part in _braces(word)]
        sys.argv += ['--root', root, '--markdown']
        try:
            runpy.run_path(sys.argv[0], run_name='__main__')
        except SystemExit as end:
            if end.code:
                raise ConfigError(f'`{command}` fails: {errors.getvalue().strip()}') from None
        finally:
            sys.argv = own
    return output.getvalue()


def _braces(word: str) -> list[str]:
    """The words that a shell makes of ``a{b,c}d``."""
    before, found, after = re.fullmatch(r'([^{]*)(?:\{(.*)\})?(.*)', word).groups()
    return [word] if found is None else [f'{before}{part}{after}' for part in found.split(',')]


def read_rows(text: str) -> list[dict[str, str]]:
    """The rows of all Markdown tables in a text, each with its cells by heading."""
    rows, headings = [], None
    for line in text.splitlines():
        if not line.startswith('|'):
            headings = None
            continue
        cells = split_cells(line.strip()[1:-1])
        if headings is None:
            headings = [cell.removeprefix(MEASURED) for cell in cells]
        elif set(line) - set('|-: '):  # not the ruler
            rows.append(dict(zip(headings, cells, strict=True)))
    return rows


def split_cells(line: str) -> list[str]:
    """Cells that bars join."""
    return [cell.strip() for cell in line.split('|')]


def differences(rows: list[dict[str, str]], entry: dict) -> list[str]:
    """What differs between an entry and the rows that its command prints.

    A page may leave out rows and columns, and join cells in a column 'TR@1 / IR@1'. Its label is
    one or more neighbouring cells, enough to tell the row from the others: 'APE', or 'APE: IR@1'
    where the command prints a row for each figure.
    """
    columns = split_cells(entry['columns'])
    shown = [(_names(row), [_cell(row, column) for column in columns]) for row in rows]
    complete = [(names, cells) for names, cells in shown if None not in cells]
    if not complete:
        return [f'no table with the columns {entry["columns"]}']
    problems = []
    for label, listed in entry['figures'].items():
        found = [cells for names, cells in complete if _words(label) in names]
        if len(found) != 1:
            which = f'{len(found)} rows' if found else 'no row'
            problems.append(f"{which} of the name '{label}', expected one: 'row' or 'row: figure'")
        elif found[0] != split_cells(listed):
            problems.append(f"'{label}' is listed with {listed}, and not {' | '.join(found[0])}")
    return problems


def _cell(row: dict[str, str], column: str) -> str | None:
    """A cell, or those that a column joins; None where the row has none."""
    column = column.removeprefix(MEASURED)
    if column in row:
        return row[column]
    parts = column.split(' / ')
    return ' / '.join(row[part] for part in parts) if row.keys() >= set(parts) else None


def _names(row: dict[str, str]) -> list[list[str]]:
    """The words of neighbouring cells among the first: at most family, table, row and figure."""
    cells = [_words(cell) for cell in row.values()][:4]
    return [
        [word for cell in cells[start:end] for word in cell]
        for start in range(len(cells))
        for end in range(start + 1, len(cells) + 1)
    ]


def _words(text: str) -> list[str]:
    return re.findall(r'[^\s:,]+', text)
