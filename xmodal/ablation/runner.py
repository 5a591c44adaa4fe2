"""Does the unfinished runs of a table, one process after the other."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from xmodal.ablation.commands import Commands
from xmodal.ablation.plan import Plan
from xmodal.ablation.remaining import format_duration, remaining_seconds
from xmodal.ablation.runs import Run
from xmodal.engine.processes import SIGNALS, signals_restored

POLL = 1.0  # seconds between looks at the child process


class TableRunner:
    """Finishes a plan; several of them may work on the same plan at the same time.

    SIGINT or SIGTERM lets the current training save and stops; the same command continues later. A
    run that fails is reported, and the others continue.

    Args:
        plan: the runs.
        commands: how to call the tools.
        waits: whether to wait for runs that other processes hold.

    Attributes:
        failed: runs whose process failed.
        stopping: whether a signal arrived.
    """

    def __init__(self, plan: Plan, commands: Commands, waits: bool = True) -> None:
        self.plan, self.commands, self.waits = plan, commands, waits
        self.failed: list[Run] = []
        self.stopping = False
        self._process: subprocess.Popen | None = None

    def run(self) -> None:
        """Does the unfinished runs."""
        runs = self.plan.runs
        for run in runs:
            run.check()
        with (
            signals_restored(),
            tqdm(
                total=len(runs),
                initial=sum(run.is_done for run in runs),
                unit='run',
                disable=None,
                bar_format='{n_fmt}/{total_fmt} runs |{bar:20}| {elapsed}{postfix}',
            ) as bar,
        ):
            for number in SIGNALS:
                signal.signal(number, self._stop)
            while not self.stopping:
                left = [run for run in runs if not run.is_done and not self._is_blocked(run)]
                bar.n = sum(run.is_done for run in runs)
                bar.refresh()
                if not left:
                    break
                # Another process may hold a run; the runs that start from it wait.
                if any(self._try(run, bar) for run in left):
                    continue
                if not self.waits:
                    break
                time.sleep(POLL)

    def _is_blocked(self, run: Run) -> bool:
        """Whether a run, or one that it needs, has failed."""
        return run in self.failed or any(self._is_blocked(other) for other in run.needs)

    def _try(self, run: Run, bar: tqdm) -> bool:
        """Does a run if it is ready and no other process holds it; whether so."""
        if self.stopping or not run.is_ready:
            return False
        with _lock(run.folder) as lock:
            if lock is None or run.is_done:
                return False
            run.claim()
            if run.lacks_training:
                command = self.commands.train(run)
                run.mark_unfinished(True)
                if self._step(run, 'train', command, lock, bar):
                    run.mark_unfinished(False)
            if run.is_trained and not run.is_done and not self.stopping:
                # Metrics come last: without them the scores may be incomplete.
                for file in (run.scores_file, run.queries_file, run.metrics_file):
                    file.unlink(missing_ok=True)
                self._step(run, 'test', self.commands.test(run), lock, bar)
            if not run.is_done and not self.stopping and run not in self.failed:
                self._fail(run, 'ended too early', bar)
        return True

    def _step(self, run: Run, step: str, command: list[str], lock: int, bar: tqdm) -> bool:
        """Runs one process, with its output in a file; whether it came to its end."""
        log = run.folder / f'{step}.log'
        bar.write(f'{run}: {step}, see {log}')
        begin = time.monotonic()
        with open(log, 'ab') as output:
            # In a new session, so that Ctrl-C reaches it through this process only; with the lock,
            # so that no other process takes the folder while it lives, even if this one ends.
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(lock,),
                env={**os.environ, 'PYTHON': sys.executable},
            )
            if self.stopping:  # the signal arrived just before
                self._process.terminate()
            while (status := self._wait()) is None:
                bar.set_postfix_str(self._postfix(run, step, time.monotonic() - begin))
            self._process = None
        run.add_seconds(step, time.monotonic() - begin)
        if status and not self.stopping:
            self._fail(run, f'{step} ended with status {status}', bar)
        return not status and not self.stopping

    def _wait(self) -> int | None:
        try:
            return self._process.wait(POLL)
        except subprocess.TimeoutExpired:
            return None

    def _fail(self, run: Run, why: str, bar: tqdm) -> None:
        self.failed.append(run)
        log = max(run.folder.glob('*.log'), key=lambda file: file.stat().st_mtime)
        tail = log.read_text(errors='replace').splitlines()[-5:]
        bar.write('\n  '.join([f'{run}: {why}. The end of {log}:', *tail]))

    def _postfix(self, run: Run, step: str, elapsed: float) -> str:
        seconds = remaining_seconds(self.plan.runs) - (run.seconds().get(step, 0.0) + elapsed)
        return f'{run}: {step}, ' + (
            f'{format_duration(seconds)} left' if seconds > 0 else 'time left: ?'
        )

    def _stop(self, *_) -> None:
        """Lets the child save and end; at a second signal it is killed."""
        process = self._process
        if process and process.poll() is None:
            if self.stopping:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.terminate()
        self.stopping = True


@contextmanager
def _lock(folder: Path) -> Iterator[int | None]:
    """Locks a folder: the lock's file descriptor, or None while another process holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / '.lock', 'w') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield file.fileno()
