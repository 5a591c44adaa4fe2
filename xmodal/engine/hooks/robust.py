"""Runs that can be repeated, interrupted and trusted."""

import os
import random
import signal
from inspect import signature
from pathlib import Path
from threading import Thread

import numpy as np
import torch
from mmengine.dist import all_reduce, get_rank, is_distributed, is_main_process
from mmengine.hooks import CheckpointHook, Hook
from mmengine.runner import Runner

from xmodal.datasets.seeding import derive_seed
from xmodal.engine.wrappers import batch_norm_statistics
from xmodal.registry import HOOKS


@HOOKS.register_module()
class IterationSeedHook(Hook):
    """Seeds every iteration from the run's seed, the iteration and the rank.

    What an iteration draws then depends on nothing before it, so that a resumed run equals the
    uninterrupted one: the random state of every rank is two numbers that each checkpoint holds.

    Args:
        history: values of a log variable that are kept. MMEngine copies the whole history at every
            update, which grows with the run.
    """

    priority = 'VERY_HIGH'

    def __init__(self, history: int = 10_000) -> None:
        self.history = history

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict | None = None
    ) -> None:
        """Seeds Python's, NumPy's and torch's generators."""
        seed = derive_seed(runner.seed, runner.iter, get_rank())
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        if runner.iter % 100 == 0:
            for buffer in runner.message_hub.log_scalars.values():
                buffer.max_length = self.history


@HOOKS.register_module()
class NonFiniteHook(Hook):
    """Ends the run when several steps in a row were skipped, because something was not finite.

    A single one only skips its step (:class:`xmodal.engine.optim.SafeAmpOptimWrapper`), which
    leaves the running statistics of batch norms as they were, too.

    Args:
        limit: how many in a row end the run.
    """

    def __init__(self, limit: int = 3) -> None:
        self.limit = limit

    def before_train(self, runner: Runner) -> None:
        """Looks for batch norms, once."""
        self._statistics = list(batch_norm_statistics(runner.model))

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict | None = None
    ) -> None:
        """Remembers the running statistics."""
        self._before = [value.clone() for value in self._statistics]

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        """Reports a skipped step, and stops at the limit."""
        in_a_row = runner.optim_wrapper.skipped_in_a_row
        if not in_a_row:
            return
        for value, before in zip(self._statistics, self._before, strict=True):
            value.copy_(before)
        losses = ', '.join(f'{k} {float(v.detach()):g}' for k, v in outputs.items() if 'loss' in k)
        samples = [f'{s.image_path}: {s.text!r}' for s in data_batch['data_samples']]
        found = f'loss or gradient not finite at iteration {runner.iter + 1} ({losses})'
        if in_a_row < self.limit:
            runner.logger.warning(f'{found}; step skipped. First of the batch: {samples[0]}')
            return
        listed = '\n  '.join(samples[:32])
        raise RuntimeError(
            f'{found}, {in_a_row} in a row. Lower the learning rate, clip gradients '
            '(optim_wrapper.clip_grad), or look for broken samples in the batch:\n  ' + listed
        )


@HOOKS.register_module()
class ExactCheckpointHook(CheckpointHook):
    """MMEngine's checkpoints, at places from which a run goes on exactly.

    A checkpoint that is due between accumulated steps waits for the step: pending gradients are in
    no checkpoint.

    Args:
        max_keep_ckpts: see :class:`mmengine.hooks.CheckpointHook`; 1 is refused.
        **others: likewise.
    """

    def __init__(self, max_keep_ckpts: int = -1, **others) -> None:
        if max_keep_ckpts == 1:
            raise ValueError(
                'default_hooks.checkpoint.max_keep_ckpts=1 deletes the only checkpoint before the '
                'next is whole: keep at least 2'
            )
        # MMEngine takes any key here, and gives it to whatever writes the file, an epoch later.
        known = signature(CheckpointHook).parameters.keys() - {'kwargs'}
        if unknown := sorted(others.keys() - known):
            raise TypeError(
                f'default_hooks.checkpoint takes no key {unknown}, expected some of {sorted(known)}'
            )
        super().__init__(max_keep_ckpts=max_keep_ckpts, **others)
        self._due = False

    def _save_best_checkpoint(self, runner: Runner, metrics: dict) -> None:
        """MMEngine's, which would delete the best checkpoint before the next is whole."""
        if not self.save_best:
            return
        several = len(self.key_indicators) > 1
        paths = self.best_ckpt_path_dict if several else vars(self)
        names = self.key_indicators if several else ['best_ckpt_path']
        before = {name: paths[name] for name in names}
        paths.update(dict.fromkeys(names))
        super()._save_best_checkpoint(runner, metrics)
        for name, path in before.items():
            if paths[name] is None:
                paths[name] = path
            elif path and path != paths[name] and is_main_process():
                Path(path).unlink(missing_ok=True)

    def every_n_train_iters(self, runner: Runner, n: int, start: int = 0) -> bool:
        """Whether a checkpoint is due and can be exact."""
        self._due |= super().every_n_train_iters(runner, n, start)
        if not self._due or not runner.optim_wrapper.should_update():
            return False
        self._due = False
        return True


@HOOKS.register_module()
class PreemptionHook(Hook):
    """On SIGTERM, saves after the current iteration and exits with 0.

    Clusters send SIGTERM to a job that has to make room, and to all its processes: those that load
    data leave it to the one that trains (:func:`leave_sigterm_to_training`).
    """

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.requested = False

    def before_train(self, runner: Runner) -> None:
        """Listens from now on."""
        self._previous = signal.signal(signal.SIGTERM, self._request)

    def after_train(self, runner: Runner) -> None:
        """Puts the former handler back."""
        signal.signal(signal.SIGTERM, self._previous)

    def _request(self, *_) -> None:
        self.requested = True

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        """Saves and exits where the signal came, on any rank, and no gradients are pending."""
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


def leave_sigterm_to_training(worker_id: int) -> None:
    """For a process that loads data: one that died of SIGTERM would take the training with it.

    SIGTERM from the training itself, which so ends its workers, is obeyed. Where nobody can tell
    who sent a signal (macOS, Windows), nothing changes.
    """
    if not hasattr(signal, 'sigwaitinfo'):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def obey_training() -> None:
        while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
            pass
        os._exit(0)

    Thread(target=obey_training, daemon=True).start()
