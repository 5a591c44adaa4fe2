"""The command lines of trainings and tests."""

import shlex
import sys

from xmodal.ablation.plan import Plan
from xmodal.ablation.runs import METRICS, Run
from xmodal.engine.command_line import write_value
from xmodal.engine.work_dir import has_begun
from xmodal.packaged import ROOT, near


class Commands:
    """The command lines of trainings and tests.

    Args:
        gpus: processes of each; more than one are started by the ``dist_`` scripts.
    """

    def __init__(self, gpus: int = 1) -> None:
        self.gpus, self.tools = gpus, near(ROOT / 'tools')

    def train(self, run: Run) -> list[str]:
        """Trains a run, or resumes it."""
        options = dict(run.options)
        resume = []
        if has_begun(run.folder):
            resume = ['--resume']
        elif run.source:
            options['load_from'] = run.source.checkpoint
        return [
            *self._call('train', run.stage.config),
            '--work-dir',
            str(run.folder),
            *resume,
            *_cfg_options(options),
        ]

    def test(self, run: Run) -> list[str]:
        """Tests a trained run, or evaluates the mean scores of an ensemble's parts."""
        if run.parts:
            return [
                sys.executable,
                f'{self.tools}/analysis/ensemble.py',
                *(str(part.scores_file) for part in run.parts),
                '--config',
                run.stage.config,
                '--metrics',
                str(run.folder / METRICS),
            ]
        options = dict(run.options)
        if run.saves_scores:
            options['test_cfg.save_scores'] = run.scores_file
        return [
            *self._call('test', run.stage.config, str(run.checkpoint)),
            '--work-dir',
            str(run.folder / 'test'),
            '--metrics',
            str(run.folder / METRICS),
            *_cfg_options(options),
        ]

    def _call(self, tool: str, *arguments: str) -> list[str]:
        if self.gpus > 1:
            return [f'{self.tools}/dist_{tool}.sh', *arguments, str(self.gpus)]
        return [sys.executable, f'{self.tools}/{tool}.py', *arguments]

    def pending(self, run: Run) -> list[list[str]]:
        """Those that a run still needs."""
        commands = [self.train(run)] if run.lacks_training else []
        if run.lacks_test:
            commands.append(self.test(run))
        return commands


def list_commands(plan: Plan, commands: Commands) -> None:
    """Prints what is left of a plan, run by run.

    Raises:
        ValueError: when a folder was made with other settings.
    """
    for run in plan.runs:
        run.check()
        print(f'# {run}' + (': done' if run.is_done else ''))
        for command in commands.pending(run):
            print(shlex.join(command))


def _cfg_options(options: dict[str, object]) -> list[str]:
    return ['--cfg-options', *(f'{key}={write_value(value)}' for key, value in options.items())]
