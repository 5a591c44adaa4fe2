"""Runs a table of a paper, or what is left of it, and prints it beside the paper's figures.

    python tools/ablate.py acerpe/table1                       # on the embedded world, 3 seeds
    python tools/ablate.py acerpe/table1 --only none ace_rpe --seeds 1
    python tools/ablate.py acerpe/table1 --preset 4m --gpus 8 --seeds 1
    python tools/ablate.py acerpe/table1 --dry-run             # commands, and figures so far

Ctrl-C or SIGTERM lets the training at hand save and stops; the same command goes on. Started twice,
it shares the work. docs/ablations.md has the rest.
"""

import argparse
import shlex
from pathlib import Path

from xmodal.ablation import Commands, Plan, TableRunner, print_grid, read_table, to_markdown
from xmodal.engine.errors import ConfigError, run_or_explain


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('table', help='acerpe/table1, or a declaration of your own (a .py file)')
    parser.add_argument('--preset', help="scale of the runs (default: the table's first)")
    parser.add_argument('--seeds', type=int, default=3, help='runs of each row (default: 3)')
    parser.add_argument('--only', nargs='+', metavar='ROW', help='names of rows (default: all)')
    parser.add_argument('--gpus', type=int, default=1, help='processes of a run (default: 1)')
    parser.add_argument('--root', type=Path, default=Path('work_dirs/ablate'), help='of all runs')
    parser.add_argument('--dry-run', action='store_true', help='list the commands, run nothing')
    parser.add_argument('--markdown', action='store_true', help='print the table as Markdown')
    return parser.parse_args()


def find_table(name: str) -> Path:
    """The file of a table, named as PAPER/TABLE or by its path.

    Raises:
        ConfigError: when there is none, with the tables there are.
    """
    if Path(name).is_file():
        return Path(name)
    paper, _, table = name.partition('/')
    file = Path('configs', paper, 'ablations', f'{table}.py')
    if table and file.is_file():
        return file
    tables = sorted(Path('configs').glob('[!_]*/ablations/*.py'))
    known = ', '.join(f'{path.parts[1]}/{path.stem}' for path in tables)
    raise ConfigError(f"no table '{name}'; there are {known}")


def list_commands(plan: Plan, commands: Commands) -> None:
    """Prints what is left, run by run."""
    for run in plan.runs:
        run.check()
        print(f'# {run}' + (': done' if run.is_done else ''))
        for command in commands.left(run):
            print(shlex.join(command))


def main() -> None:
    """Runs the table and prints it."""
    args = parse_args()
    if args.seeds < 1 or args.gpus < 1:
        raise ConfigError('--seeds and --gpus are 1 or more')
    table = read_table(find_table(args.table), args.preset, args.only)
    plan = Plan(table, args.seeds, args.root)
    commands = Commands(args.gpus)
    runner = TableRunner(plan, commands)
    if args.dry_run:
        list_commands(plan, commands)
    else:
        runner.run()
    if args.markdown:
        print(to_markdown(plan))
    else:
        print_grid(plan)
    left = sum(not run.is_done for run in plan.runs)
    if left:
        print(f'{left} of {len(plan.runs)} runs are left; the same command goes on with them')
    if runner.failed:
        raise SystemExit(1)


if __name__ == '__main__':
    run_or_explain(main)
