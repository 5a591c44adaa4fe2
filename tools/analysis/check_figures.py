"""Compares the figures of the pages with docs/figures.yml, and that list with results of runs.

    python tools/analysis/check_figures.py                # pages and list; metrics of this folder
    python tools/analysis/check_figures.py --root RUNS    # metrics of the runs in another folder
    python tools/analysis/check_figures.py --remake       # and with the tables of docs/results
    python tools/analysis/check_figures.py --add          # lists new figures, with their commits

A figure belongs to the last ``python tools/...`` command above it in its section. docs/figures.md
describes the list.
"""

import argparse
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mmengine import dump, load

from xmodal.ablation.listed_figures import compare_metrics, compare_results
from xmodal.engine.errors import run_or_explain
from xmodal.errors import ConfigError

LIST = Path('docs/figures.yml')
KEYS = ('page', 'section', 'command', 'columns', 'commit', 'figures')
_FIGURE = re.compile(r'(?=.*\d)[-+−×…\d.,±/%() ]+( (GB|MB))?|\d[\d.]* to \d[\d.]*')
_COMMAND = re.compile(r'(?:\w+=\S+ )*python tools/.*')


class Figures(NamedTuple):
    """A row of a table with measured figures.

    Attributes:
        page: path of the page.
        section: its heading.
        command: the last one above it in this section.
        columns: heading of the table, without its first cell, joined by ' | '.
        label: first cell of the row.
        cells: the other cells, joined by ' | '.
        line: number of its line, from 1.
    """

    page: str
    section: str
    command: str
    columns: str
    label: str
    cells: str
    line: int


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--root', type=Path, default=Path(), help='folder that has the work_dirs (default: this)'
    )
    parser.add_argument(
        '--remake',
        action='store_true',
        help='run the commands that read published results (ablate.py --dry-run --results)',
    )
    parser.add_argument('--add', action='store_true', help='list the figures that are not listed')
    return parser.parse_args()


def read_page(page: Path) -> Iterator[Figures]:
    """Finds the rows with figures below a command of a page."""
    section, command, columns, block = '', '', '', None
    for number, line in enumerate(page.read_text(encoding='utf-8').splitlines(), 1):
        if line.startswith('```'):
            if block is not None:
                command = next(reversed(commands(block)), command)
            block = '' if block is None else None
        elif block is not None:
            block += f'{line}\n'
        elif line.startswith('#'):
            section, command = line.lstrip('# '), ''
        elif not line.startswith('|'):
            columns = ''
        elif command:
            label, *cells = (cell.strip() for cell in line.strip().removesuffix('|')[1:].split('|'))
            joined = ' | '.join(cells).strip()
            columns = columns or joined
            if any(_FIGURE.fullmatch(cell) for cell in cells):
                yield Figures(page.as_posix(), section, command, columns, label, joined, number)


def commands(block: str) -> list[str]:
    """The commands of a block of code, each in one line, without its comment."""
    lines = re.sub(r'\\\n\s*', '', block).splitlines()
    stripped = (re.sub(r'\s+#.*', '', line).strip() for line in lines)
    return [line for line in stripped if _COMMAND.fullmatch(line)]


def read_list(file: Path) -> list[dict]:
    """Reads the list.

    Raises:
        ConfigError: when an entry has other keys, or its commit is no short hash.
    """
    entries = load(file)
    known = ', '.join(KEYS)
    for number, entry in enumerate(entries, 1):
        where = f'{file}: entry {number}'
        if not isinstance(entry, dict) or entry.keys() - {'metrics'} != set(KEYS):
            raise ConfigError(
                f'{where} has not the keys {known}: metrics alone may be added or missing'
            )
        if not re.fullmatch('[0-9a-f]{7,12}', str(entry['commit'])):
            raise ConfigError(
                f'{where}: commit is {entry["commit"]!r}, expected a short hash, in quotes'
            )
    return entries


def compare_pages(entries: list[dict], rows: list[Figures]) -> list[str]:
    """One line for each figure that differs, or is only in a page or only in the list."""
    listed = {
        (*(entry[key] for key in KEYS[:4]), label): cells
        for entry in entries
        for label, cells in entry['figures'].items()
    }
    shown = {row[:5]: row for row in rows}
    problems = [
        f"{row.page}:{row.line}: '{row.label}' is twice in a table"
        for row in rows
        if shown[row[:5]] is not row
    ]
    for key, row in shown.items():
        where = f"{row.page}:{row.line}: '{row.label}'"
        if key not in listed:
            problems.append(f'{where} is not listed: add it with --add')
        elif listed[key] != row.cells:
            problems.append(f'{where} shows {row.cells}, and the list has {listed[key]}')
    for page, section, command, columns, label in listed.keys() - shown.keys():
        problems.append(
            f"{page}: '{label}' is listed and not in section '{section}', below `{command}`, in a "
            f'table with {columns}'
        )
    return sorted(problems)


def unknown_commits(entries: list[dict]) -> list[str]:
    """Commits of the list that this repository does not have; none where git has no history."""
    if _git('rev-parse', '--is-shallow-repository') != 'false':
        return []
    commits = sorted({entry['commit'] for entry in entries})
    return [f'commit {name} is unknown' for name in commits if not _git('log', '-1', name, '--')]


def add(entries: list[dict], rows: list[Figures]) -> None:
    """Adds the rows that are not listed, and replaces those that differ, in the list's order.

    The commit of a row is the one that wrote it into the page; its runs stay the same. Rows that no
    page has are dropped.
    """
    commit_of, metrics_of = {}, {}
    for entry in entries:
        metrics = entry.get('metrics', {'files': {}})
        for label, cells in entry['figures'].items():
            key = *(entry[key] for key in KEYS[:4]), label
            commit_of[(*key, cells)] = entry['commit']
            if label in metrics['files']:
                metrics_of[key] = metrics
    found: dict[tuple, dict] = {}
    for row in rows:
        key = *row[:4], commit_of.get(row[:6]) or _commit_of_line(row)
        entry = found.setdefault(key, dict(zip(KEYS, (*key, {}), strict=True)))
        entry['figures'][row.label] = row.cells
        if metrics := metrics_of.get(row[:5]):
            kept = entry.setdefault('metrics', {**metrics, 'files': {}})
            kept['files'][row.label] = metrics['files'][row.label]
    entries[:] = found.values()


def _commit_of_line(row: Figures) -> str:
    blamed = _git('blame', '-s', '--abbrev=7', '-L', f'{row.line},{row.line}', '--', row.page)
    commit = blamed.split()[0].lstrip('^')[:7] if blamed else ''
    if not commit.strip('0'):
        raise ConfigError(f'{row.page}:{row.line} is not committed yet: commit it, then add it')
    return commit


def _git(*arguments: str) -> str:
    """What git prints; '' where it fails."""
    try:
        done = subprocess.run(['git', *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ''
    return done.stdout.strip() if not done.returncode else ''


def main() -> None:
    """Compares, or adds."""
    args = parse_args()
    pages = [Path('README.md'), *sorted(Path('docs').rglob('*.md'))]
    rows = [row for page in pages for row in read_page(page)]
    entries = read_list(LIST) if LIST.is_file() else []
    if args.add:
        add(entries, rows)
        dump(entries, LIST, sort_keys=False, allow_unicode=True, width=1000)
    problems, compared = compare_metrics(entries, args.root)
    problems += compare_pages(entries, rows) + unknown_commits(entries)
    remade = 0
    if args.remake:
        found, remade = compare_results(entries)
        problems += found
    for problem in problems:
        print(problem)
    print(
        f'{len(rows)} rows of figures in {len(pages)} pages, {len(entries)} entries in {LIST}; '
        f'{compared} cells compared with metrics.json, {remade} rows with published results'
    )
    if problems:
        raise SystemExit(1)


if __name__ == '__main__':
    run_or_explain(main)
