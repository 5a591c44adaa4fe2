"""Runs a table of a paper, or what is left of it, and prints it next to the paper's figures.

    python tools/ablate.py acerpe/table1                       # on the embedded world, 3 seeds
    python tools/ablate.py acerpe/table1 --only none ace_rpe --seeds 1
    python tools/ablate.py acerpe/table1 --preset 4m --gpus 8 --seeds 1
    python tools/ablate.py acerpe/table1 --dry-run             # commands, what they lack, figures
    python tools/ablate.py acerpe/table1 --compare none --column IR@1    # does it help?
    python tools/ablate.py acerpe/table1 --results docs/results/acerpe.tar.xz   # ours beside yours
    python tools/ablate.py acerpe/table7 --preset 4m --print-config groups_4 > groups_4.py
    python tools/ablate.py tournament --until-decided 8        # every plug-in in every family

Ctrl-C or SIGTERM lets the current training save and stops; the same command continues it. Several
processes of the command share the work. docs/ablations.md has the rest.
"""

import argparse
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from xmodal.ablation import (
    Column,
    Commands,
    Comparison,
    Plan,
    Row,
    SequentialRunner,
    Table,
    TableRunner,
    Tournament,
    compare,
    comparisons_to_markdown,
    find_table,
    list_commands,
    list_missing,
    print_comparisons,
    print_grid,
    print_row_config,
    print_tournament,
    read_cells,
    read_table,
    reference_row,
    shared_results,
    to_markdown,
    unpacked_results,
)
from xmodal.ablation.verdict import MARGIN
from xmodal.engine.command_line import at_least, not_negative
from xmodal.engine.errors import ConfigError, run_or_explain
from xmodal.files import require_new


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        'table',
        help='acerpe/table1, or the path of a declaration (a .py file); tournament: every plug-in '
        "of configs/tournament.py against none, in its entry's preset, or its table's first",
    )
    parser.add_argument('--preset', help="scale of the runs (default: the table's first)")
    parser.add_argument(
        '--seeds', type=at_least(1), default=3, help='runs of each row (default: 3)'
    )
    parser.add_argument('--only', nargs='+', metavar='ROW', help='names of rows (default: all)')
    parser.add_argument(
        '--gpus', type=at_least(1), default=1, help='processes of a run (default: 1)'
    )
    parser.add_argument('--root', type=Path, default=Path('work_dirs/ablate'), help='of all runs')
    parser.add_argument(
        '--results',
        type=Path,
        nargs='+',
        metavar='FILE.tar.xz',
        help='results of finished runs: those that the files have are not run again, new ones are '
        'added to the last',
    )
    parser.add_argument('--dry-run', action='store_true', help='list the commands, change nothing')
    parser.add_argument('--markdown', action='store_true', help='print the table as Markdown')
    parser.add_argument(
        '--print-config', metavar='ROW[:STAGE]', help='print the config of a training, run nothing'
    )
    parser.add_argument(
        '--compare',
        metavar='ROW',
        help="row that the others are compared with (default: the paper's method, or the first)",
    )
    parser.add_argument(
        '--column', nargs='+', metavar='HEADING', help='columns to compare by (default: all)'
    )
    parser.add_argument(
        '--margin',
        type=not_negative,
        default=MARGIN,
        help='points within which rows are equivalent (default: 1)',
    )
    parser.add_argument(
        '--until-decided',
        type=at_least(3),
        metavar='MAX',
        help='add seeds to --seeds, one at a time and MAX in all, until the rows are decided',
    )
    parser.add_argument(
        '--plot', type=Path, metavar='FILE.svg', help='draw the differences and their intervals'
    )
    args = parser.parse_args()
    check_args(parser, args)
    return args


def check_args(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuses options that would be ignored, or fail after hours of training."""
    if args.plot:
        require_new('--plot', args.plot)
        if args.plot.suffix != '.svg' or not args.plot.parent.is_dir():
            parser.error(f'--plot {args.plot}: expected a name with .svg in a folder that exists')
    if args.table == 'tournament':
        for name in ('preset', 'only', 'column', 'compare', 'print_config'):
            if getattr(args, name):
                parser.error(f'--{name.replace("_", "-")} is not for the tournament')
    elif args.until_decided and args.dry_run:
        parser.error('--dry-run shows what --seeds has; leave out --until-decided')
    if args.until_decided and not 2 <= args.seeds < args.until_decided:
        parser.error('--until-decided MAX needs --seeds of at least 2, and fewer than MAX')


def chosen_columns(table: Table, headings: list[str] | None) -> list[Column]:
    """The columns to compare by.

    Raises:
        ConfigError: when the table has no column of a heading.
    """
    known = {column.heading: column for column in table.columns}
    if unknown := [heading for heading in headings or () if heading not in known]:
        raise ConfigError(f"--column: no column '{unknown[0]}'; there are {', '.join(known)}")
    return [known[heading] for heading in headings or known]


def print_figures(plan: Plan, markdown: bool) -> None:
    """Prints the table."""
    if markdown:
        print(to_markdown(plan))
    else:
        print_grid(plan)


def print_verdicts(found: list[Comparison], reference: Row, args: argparse.Namespace) -> None:
    """Prints what may be said of the differences, and draws it."""
    if args.markdown:
        print('', comparisons_to_markdown(found, reference), sep='\n')
    else:
        print_comparisons(found, reference)
    plot_verdicts(args.plot, [(comparison.column.heading, comparison) for comparison in found])


def plot_verdicts(file: Path | None, found: list[tuple[str, Comparison]]) -> None:
    """Draws comparisons in panels by their titles, if ``--plot`` asks for it."""
    if file is None:
        return
    from xmodal.ablation.forest import write_forest  # imports matplotlib and all models

    is_drawn = write_forest(file, found)
    print(f'{file}: the differences' if is_drawn else f'{file} is not drawn: no verdict yet')


def results_of(
    tables: Iterable[tuple[Table, int]], args: argparse.Namespace
) -> AbstractContextManager[Path]:
    """The folder with the results of tables and their seeds, also those of ``--results``."""
    if args.results is None:
        return nullcontext(args.root)
    runs = {run.folder: run for table, n in tables for run in Plan(table, n, args.root).runs}
    share = unpacked_results if args.dry_run else shared_results
    return share(list(runs.values()), args.root, *args.results)


def run_until_decided(
    table: Table, columns: list[Column], commands: Commands, args: argparse.Namespace
) -> None:
    """Runs a table with one seed more after the other."""
    looks = range(args.seeds, args.until_decided + 1)
    if len(table.rows) < 2:
        raise ConfigError('--until-decided compares rows: --only must name the reference, too')
    runner = SequentialRunner(table, looks, args.root, commands, args.compare, columns, args.margin)
    found = runner.run()
    print_figures(runner.plan, args.markdown)
    print_verdicts(found, runner.reference, args)
    print(f'{runner.plan.seeds} of at most {args.until_decided} seeds')
    if runner.failed:
        raise SystemExit(1)


def run_tournament(args: argparse.Namespace) -> None:
    """Every plug-in in every family, the cheapest open question first."""
    looks = range(args.seeds, (args.until_decided or args.seeds) + 1)
    cells, commands = read_cells(), Commands(args.gpus)
    tables = ((cell.table, (cell.looks or looks)[-1]) for cell in cells)
    with results_of(tables, args) as results:
        tournament = Tournament(cells, looks, args.root, commands, args.margin, results)
        if args.dry_run:
            tournament.look()
        else:
            tournament.run()
        print_tournament(tournament, args.markdown)
        plot_verdicts(args.plot, tournament.comparisons())
    print(f'{len(tournament.open)} of {len(tournament.cells)} cells are open')
    if tournament.failed:
        print(f'{len(tournament.failed)} runs failed; cells that need them are not counted as open')
        raise SystemExit(1)


def run_table(table: Table, results: Path, args: argparse.Namespace) -> None:
    """Runs what is left of a table, and prints it."""
    columns, commands = chosen_columns(table, args.column), Commands(args.gpus)
    if args.until_decided:
        run_until_decided(table, columns, commands, args)
        return
    plan = Plan(table, args.seeds, args.root, results)
    runner = TableRunner(plan, commands)
    reference = reference_row(plan, args.compare)  # a wrong name is told before hours of training
    if args.dry_run:
        list_commands(plan, commands)
        list_missing(plan)
    else:
        runner.run()
    print_figures(plan, args.markdown)
    if len(table.rows) > 1 and any(run.metrics() for run in plan.runs):
        print_verdicts(compare(plan, reference, columns, args.margin), reference, args)
    if left := sum(not run.is_done for run in plan.runs):
        print(f'{left} of {len(plan.runs)} runs are left; the same command continues them')
    if runner.failed:
        raise SystemExit(1)


def main() -> None:
    """Runs the table and prints it."""
    args = parse_args()
    if args.table == 'tournament':
        run_tournament(args)
        return
    if args.print_config:
        print_row_config(f'{args.table}:{args.print_config}', args.preset)
        return
    table = read_table(find_table(args.table), args.preset, args.only)
    with results_of([(table, args.until_decided or args.seeds)], args) as results:
        run_table(table, results, args)


if __name__ == '__main__':
    run_or_explain(main)
