"""Does what is left of a table, one process after the other."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

from tqdm import tqdm

from xmodal.ablation.runs import Plan, Run
from xmodal.engine.checkpoint import latest_checkpoint


class Commands:
    """The command lines of trainings and tests.

    Args:
        gpus: processes of each; more than one go through the scripts for several.
        tools: folder of the tools.
    """

    def __init__(self, gpus: int = 1, tools: str | Path = 'tools') -> None:
        self.gpus, self.tools = gpus, str(tools)

    def train(self, run: Run) -> list[str]:
        """Trains a run, or goes on with it."""
        options = dict(run.options)
        resume = []
        if latest_checkpoint(run.folder):
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
        """Tests a trained run, or all parts of an ensemble together."""
        if run.parts:
            return [
                sys.executable,
                f'{self.tools}/analysis/ensemble.py',
                *(str(part.scores_file) for part in run.parts),
                '--config',
                run.stage.config,
                '--metrics',
                str(run.metrics_file),
            ]
        options = dict(run.options)
        if run.saves_scores:
            options['test_cfg.save_scores'] = run.scores_file
        return [
            *self._call('test', run.stage.config, str(run.checkpoint)),
            '--work-dir',
            str(run.folder / 'test'),
            '--metrics',
            str(run.metrics_file),
            *_cfg_options(options),
        ]

    def _call(self, tool: str, *arguments: str) -> list[str]:
        if self.gpus > 1:
            return [f'{self.tools}/dist_{tool}.sh', *arguments, str(self.gpus)]
        return [sys.executable, f'{self.tools}/{tool}.py', *arguments]

    def left(self, run: Run) -> list[list[str]]:
        """What a run still needs."""
        commands = [] if run.is_trained else [self.train(run)]
        if run.lacks_test:
            commands.append(self.test(run))
        return commands


class TableRunner:
    """Runs a plan to its end; several may work on the same plan at the same time.

    SIGINT or SIGTERM lets the training at hand save and stops; the same command goes on later. A
    run that fails is reported, and the others go on.

    Args:
        plan: the runs.
        commands: how to call the tools.
        poll: seconds between looks at a child.

    Attributes:
        failed: runs whose process failed.
        stopping: whether a signal came.
    """

    def __init__(self, plan: Plan, commands: Commands, poll: float = 1.0) -> None:
        self.plan, self.commands, self.poll = plan, commands, poll
        self.failed: list[Run] = []
        self.stopping = False
        self._process: subprocess.Popen | None = None

    def run(self) -> None:
        """Does what is left."""
        runs = self.plan.runs
        for run in runs:
            run.check()
        with (
            self._signals(),
            tqdm(
                total=len(runs),
                initial=sum(run.is_done for run in runs),
                unit='run',
                disable=None,
                bar_format='{n_fmt}/{total_fmt} runs |{bar:20}| {elapsed}{postfix}',
            ) as bar,
        ):
            while not self.stopping:
                left = [run for run in runs if not run.is_done and not self._is_lost(run)]
                bar.n = sum(run.is_done for run in runs)
                bar.refresh()
                if not left:
                    break
                # A run may be in the hands of another process; what begins with it waits.
                if not any(self._try(run, bar) for run in left):
                    time.sleep(self.poll)

    def _is_lost(self, run: Run) -> bool:
        """Whether a run, or one that it needs, has failed."""
        return run in self.failed or any(self._is_lost(other) for other in run.needs)

    def _try(self, run: Run, bar: tqdm) -> bool:
        """Does a run if it is ready and free; whether it was."""
        if self.stopping or not run.is_ready:
            return False
        with _lock(run.folder) as lock:
            if lock is None or run.is_done:
                return False
            run.claim()
            if not run.is_trained:
                self._step(run, 'train', self.commands.train(run), lock, bar)
            if run.is_trained and not run.is_done and not self.stopping:
                for file in (run.scores_file, run.metrics_file):
                    file.unlink(missing_ok=True)  # metrics come last: without them scores are cut
                self._step(run, 'test', self.commands.test(run), lock, bar)
            if not run.is_done and not self.stopping and run not in self.failed:
                self._fail(run, 'ended too early', bar)
        return True

    def _step(self, run: Run, step: str, command: list[str], lock: int, bar: tqdm) -> None:
        """Runs one process, with its output in a file."""
        log = run.folder / f'{step}.log'
        bar.write(f'{run}: {step}, see {log}')
        begin = time.monotonic()
        with open(log, 'ab') as output:
            # In a session of its own, so that Ctrl-C reaches it through us alone; with the lock, so
            # that nobody else takes the folder while it lives, even where we do not.
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(lock,),
                env={**os.environ, 'PYTHON': sys.executable},
            )
            if self.stopping:  # the signal came just before
                self._process.terminate()
            while (status := self._wait()) is None:
                bar.set_postfix_str(self._outlook(run, step, time.monotonic() - begin))
            self._process = None
        run.add_seconds(step, time.monotonic() - begin)
        if status and not self.stopping:
            self._fail(run, f'{step} ended with status {status}', bar)

    def _wait(self) -> int | None:
        try:
            return self._process.wait(self.poll)
        except subprocess.TimeoutExpired:
            return None

    def _fail(self, run: Run, why: str, bar: tqdm) -> None:
        self.failed.append(run)
        log = max(run.folder.glob('*.log'), key=lambda file: file.stat().st_mtime)
        tail = log.read_text(errors='replace').splitlines()[-5:]
        bar.write('\n  '.join([f'{run}: {why}. The end of {log}:', *tail]))

    def _outlook(self, run: Run, step: str, elapsed: float) -> str:
        seconds = remaining_seconds(self.plan.runs) - (run.seconds().get(step, 0.0) + elapsed)
        return f'{run}: {step}, ' + (f'{_span(seconds)} left' if seconds > 0 else 'time left: ?')

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Stops at SIGINT and SIGTERM; a second one ends the child at once."""

        def stop(*_) -> None:
            process = self._process
            if process and process.poll() is None:
                if self.stopping:
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.terminate()
            self.stopping = True

        previous = [(n, signal.signal(n, stop)) for n in (signal.SIGINT, signal.SIGTERM)]
        try:
            yield
        finally:
            for number, handler in previous:
                signal.signal(number, handler)


def remaining_seconds(runs: list[Run]) -> float:
    """How long what is left takes one process, by the mean of what is done; NaN when nothing is.

    A step that was never done counts as the mean of all that were.
    """
    known: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        times = run.seconds()
        done = {'train': run.is_trained, 'test': not run.lacks_test}
        for step in times.keys() & {step for step in done if done[step]}:
            known.setdefault((run.stage.name, step), []).append(times[step])
    if not known:
        return float('nan')
    usual = {key: mean(times) for key, times in known.items()}
    left = 0.0
    for run in runs:
        if not run.is_trained:
            left += usual.get((run.stage.name, 'train'), mean(usual.values()))
        if run.lacks_test:
            left += usual.get((run.stage.name, 'test'), mean(usual.values()))
    return left


@contextmanager
def _lock(folder: Path) -> Iterator[int | None]:
    """Holds a folder: the lock's file descriptor, or None while somebody else holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / '.lock', 'w') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield file.fileno()


def _cfg_options(options: dict[str, object]) -> list[str]:
    return ['--cfg-options', *(f'{key}={value}' for key, value in options.items())]


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f'{minutes // 60} h {minutes % 60:02d} min' if minutes >= 60 else f'{minutes} min'
