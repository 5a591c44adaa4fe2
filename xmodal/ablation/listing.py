"""What a table has left to do, printed without doing it."""

import shlex

from xmodal.ablation.commands import Commands
from xmodal.ablation.plan import Plan
from xmodal.ablation.requirements import missing_by_stage, missing_gpus


def list_commands(plan: Plan, commands: Commands) -> None:
    """Prints what is left, run by run.

    Raises:
        ValueError: when a folder was made with other settings.
    """
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
