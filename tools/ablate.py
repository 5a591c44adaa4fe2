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
import shlex
from collections import defaultdict
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from pprint import pformat

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
    missing_by_stage,
    missing_gpus,
    print_comparisons,
    print_grid,
    print_tournament,
    read_cells,
    read_table,
    reference_row,
    row_config,
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
        'of configs/tournament.py against none, in the first preset of its table',
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
    if args.plot:
        require_new('--plot', args.plot)
    if args.until_decided and not 2 <= args.seeds < args.until_decided:
        parser.error('--until-decided MAX needs --seeds of at least 2, and fewer than MAX')
    return args


def list_commands(plan: Plan, commands: Commands) -> None:
    """Prints what is left, run by run."""
    for run in plan.runs:
        run.check()
        print(f'# {run}' + (': done' if run.is_done else ''))
        for command in commands.pending(run):
            print(shlex.join(command))


def list_missing(plan: Plan) -> None:
    """Prints what this machine lacks for the unfinished runs, stage by stage."""
    for stage, files in missing_by_stage(plan).items():
        print(f'# {stage}: {len(files)} missing')
        for file in files:
            print(f'#   {file}')
    if gpus := missing_gpus(plan):
        print(f'# {gpus}')


def print_config(row: str, preset: str | None) -> None:
    """Prints the config of a row's training, to be saved and trained."""
    print(f'# {row}')
    # In the order of the config, which decides over random initial weights; MMEngine's dump sorts.
    for key, value in row_config(row, preset).to_dict().items():
        print(f'{key} = {pformat(value, width=100, sort_dicts=False)}')


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

    panels = defaultdict(list)
    for title, comparison in found:
        if comparison.verdict:
            panels[title].append(comparison)
    if not panels:
        print(f'{file} is not drawn: there is no verdict yet')
        return
    write_forest(file, panels)
    print(f'{file}: the differences with their intervals')


def results_of(tables: list[Table], args: argparse.Namespace) -> AbstractContextManager[Path]:
    """The folder that has the results of tables, with those of ``--results`` meanwhile."""
    if args.results is None:
        return nullcontext(args.root)
    seeds = args.until_decided or args.seeds
    plans = [Plan(table, seeds, args.root) for table in tables]
    runs = list({run.folder: run for plan in plans for run in plan.runs}.values())
    share = unpacked_results if args.dry_run else shared_results
    return share(runs, args.root, *args.results)


def run_until_decided(
    table: Table, columns: list[Column], commands: Commands, args: argparse.Namespace
) -> None:
    """Runs a table with one seed more after the other."""
    looks = range(args.seeds, args.until_decided + 1)
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
    with results_of([cell.table for cell in cells], args) as results:
        tournament = Tournament(cells, looks, args.root, commands, args.margin, results)
        if args.dry_run:
            tournament.look()
        else:
            tournament.run()
        print_tournament(tournament, args.markdown)
        plot_verdicts(args.plot, tournament.comparisons())
    print(f'{len(tournament.open)} of {len(tournament.cells)} cells are open')
    if tournament.failed:
        raise SystemExit(1)


def run_table(table: Table, results: Path, args: argparse.Namespace) -> None:
    """Runs what is left of a table, and prints it."""
    plan = Plan(table, args.seeds, args.root, results)
    commands = Commands(args.gpus)
    runner = TableRunner(plan, commands)
    columns = chosen_columns(table, args.column)
    if args.until_decided and not args.dry_run:
        run_until_decided(table, columns, commands, args)
        return
    if args.dry_run:
        list_commands(plan, commands)
        list_missing(plan)
    else:
        runner.run()
    print_figures(plan, args.markdown)
    if len(table.rows) > 1 and any(run.metrics() for run in plan.runs):
        reference = reference_row(plan, args.compare)
        found = compare(plan, reference, columns, args.margin)
        print_verdicts(found, reference, args)
    left = sum(not run.is_done for run in plan.runs)
    if left:
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
        print_config(f'{args.table}:{args.print_config}', args.preset)
        return
    table = read_table(find_table(args.table), args.preset, args.only)
    with results_of([table], args) as results:
        run_table(table, results, args)


if __name__ == '__main__':
    run_or_explain(main)
