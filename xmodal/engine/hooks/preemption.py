"""Runs that a cluster preempts, or that their user interrupts."""

import math
import os
import signal
import time
from pathlib import Path
from threading import Thread

import torch
from mmengine.dist import all_reduce, is_distributed, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from xmodal.engine.processes import SIGNALS
from xmodal.engine.work_dir import set_last_checkpoint
from xmodal.registry import HOOKS

#: Where the message hub has the name of the checkpoint of a preemption, until one replaces it.
PREEMPTED = 'preempted_ckpt'
_SECONDS = 5  # after which a worker looks whether its training still lives


@HOOKS.register_module()
class PreemptionHook(Hook):
    """Saves a checkpoint on SIGTERM or SIGINT (Ctrl-C), after the current step, and exits.

    The status is 0 after SIGTERM and 130 after SIGINT; a second SIGINT ends the process at once.
    SIGINT within a second of the first is that of torchrun, which passes on what it gets itself.

    Clusters send SIGTERM to all processes of a job that they preempt, and a terminal sends SIGINT
    to all that it runs. Processes that load data leave both to the one that trains
    (:func:`leave_signals_to_training`).
    """

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.requested = 0  # the signal
        self._interrupted = -math.inf  # when SIGINT came, in seconds

    def before_train(self, runner: Runner) -> None:
        """Sets the signal handlers, which the runner restores."""
        for number in SIGNALS:
            signal.signal(number, self._request)

    def _request(self, number: int, _) -> None:
        self.requested = number
        if number == signal.SIGINT:
            before, self._interrupted = self._interrupted, time.monotonic()
            if self._interrupted - before < 1:
                return
            if math.isfinite(before):
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                signal.raise_signal(signal.SIGINT)
            if is_main_process():  # unbuffered: the signal may have interrupted a print
                os.write(2, b'\nSIGINT: this step is finished and saved; again to end at once\n')

    def after_train_iter(self, runner: Runner, *_, **__) -> None:
        """Saves and exits if any rank got a signal and no gradients are pending."""
        requested = torch.tensor(float(self.requested))
        if is_distributed():
            requested = requested.to(next(runner.model.parameters()).device)
            all_reduce(requested, 'max')
        if not requested or not runner.optim_wrapper.should_update():
            return
        path, number = _save(runner), int(requested)
        runner.logger.info(
            f'{signal.Signals(number).name}: saved {path}; resume with the same command and '
            '--resume'
        )
        # To a launcher, a rank with another status than 0 is one that failed: it kills the others.
        is_failure = number == signal.SIGINT and not is_distributed()
        raise SystemExit(128 + number if is_failure else 0)


def _save(runner: Runner) -> Path:
    """Saves a checkpoint, unless this step has one, and deletes that of an earlier preemption."""
    hub, path = runner.message_hub, Path(runner.work_dir, f'iter_{runner.iter + 1}.pth')
    saved = Path(hub.runtime_info.get('last_ckpt', ''))
    if saved.name == path.name:
        return saved
    former = hub.runtime_info.get(PREEMPTED)
    hub.update_info(PREEMPTED, path.name)
    runner.save_checkpoint(runner.work_dir, path.name, by_epoch=False)
    if is_main_process():
        set_last_checkpoint(runner.work_dir, path)
        if former and former != path.name:
            path.with_name(former).unlink(missing_ok=True)
    return path


def leave_signals_to_training(worker_id: int) -> None:
    """Makes a process that loads data ignore SIGINT, and SIGTERM unless the training sends it.

    A worker that dies of a signal would end the training as well. One whose training was killed
    ends: by itself it would wait forever for its last batch to be read, and keep its files locked.
    Where the sender of a signal is unknown (macOS, Windows), nothing changes for SIGTERM.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not hasattr(signal, 'sigtimedwait'):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    training = os.getppid()

    def obey_training() -> None:
        received = None
        while os.getppid() == training and (received is None or received.si_pid != training):
            received = signal.sigtimedwait({signal.SIGTERM}, _SECONDS)
        os._exit(0)

    Thread(target=obey_training, daemon=True).start()
