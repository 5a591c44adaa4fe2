"""Runs that a cluster preempts."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import torch
from mmengine.dist import all_reduce, is_distributed, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from xmodal.registry import HOOKS


@HOOKS.register_module()
class PreemptionHook(Hook):
    """Saves a checkpoint on SIGTERM, after the current step, and exits with 0.

    Clusters send SIGTERM to all processes of a job that they preempt. Processes that load data
    leave it to the one that trains (:func:`leave_sigterm_to_training`).
    """

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.requested = False

    def before_train(self, runner: Runner) -> None:
        """Sets the signal handler, which the runner restores (:func:`sigterm_restored`)."""
        signal.signal(signal.SIGTERM, self._request)

    def _request(self, *_) -> None:
        self.requested = True

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        """Saves and exits if any rank got the signal and no gradients are pending."""
        requested = torch.tensor(float(self.requested))
        if is_distributed():
            requested = requested.to(next(runner.model.parameters()).device)
            all_reduce(requested, 'max')
        if not requested or not runner.optim_wrapper.should_update():
            return
        name = f'iter_{runner.iter + 1}.pth'
        runner.save_checkpoint(runner.work_dir, name, by_epoch=False)
        if is_main_process():
            path = f'{runner.work_dir}/{name}'
            with open(f'{runner.work_dir}/last_checkpoint', 'w') as file:
                file.write(path)
            runner.logger.info(f'SIGTERM: saved {path}; resume with the same command and --resume')
        raise SystemExit(0)


@contextmanager
def sigterm_restored() -> Iterator[None]:
    """Restores the handler of SIGTERM, however the training within it ends.

    A handler that stays behind would let processes that are forked later ignore the signal.
    """
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def leave_sigterm_to_training(worker_id: int) -> None:
    """Makes a process that loads data ignore SIGTERM, unless the training process sends it.

    A worker that dies of SIGTERM would end the training as well. Where the sender of a signal is
    unknown (macOS, Windows), nothing changes.
    """
    if not hasattr(signal, 'sigwaitinfo'):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def obey_training() -> None:
        while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
            pass
        os._exit(0)

    Thread(target=obey_training, daemon=True).start()
