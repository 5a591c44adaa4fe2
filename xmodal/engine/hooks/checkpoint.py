"""When checkpoints are saved, and when they are deleted."""

from inspect import signature
from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.hooks import CheckpointHook
from mmengine.runner import Runner

from xmodal.errors import ConfigError, no_key
from xmodal.registry import HOOKS


@HOOKS.register_module()
class ExactCheckpointHook(CheckpointHook):
    """MMEngine's checkpoint hook, with checkpoints from which a run resumes exactly.

    Accumulated gradients are not saved, so a checkpoint that is due between optimizer steps waits
    for the next step. The best checkpoint is deleted only after the next one is complete.

    Args:
        max_keep_ckpts: see :class:`mmengine.hooks.CheckpointHook`; 1 is an error.
        **others: the other arguments of :class:`mmengine.hooks.CheckpointHook`.

    Raises:
        ConfigError: for a key that MMEngine's hook does not have, or ``max_keep_ckpts=1``.
    """

    def __init__(self, max_keep_ckpts: int = -1, **others) -> None:
        if max_keep_ckpts == 1:
            raise ConfigError(
                'default_hooks.checkpoint.max_keep_ckpts=1 deletes the only checkpoint before the '
                'next one is complete: keep at least 2'
            )
        # MMEngine accepts any key and passes it to the writer of the file, an epoch later.
        known = [name for name in signature(CheckpointHook).parameters if name != 'kwargs']
        if unknown := sorted(others.keys() - set(known)):
            raise ConfigError(f'default_hooks.checkpoint {no_key(unknown[0], known)}')
        super().__init__(max_keep_ckpts=max_keep_ckpts, **others)
        self._due = False

    def _save_best_checkpoint(self, runner: Runner, metrics: dict) -> None:
        """Deletes the former best checkpoint after the new one is complete, not before."""
        if not self.save_best:
            return
        # MMEngine keeps one path, or a path for each of several metrics.
        has_many = len(self.key_indicators) > 1
        paths = self.best_ckpt_path_dict if has_many else vars(self)
        names = self.key_indicators if has_many else ['best_ckpt_path']
        former = {name: paths[name] for name in names}
        paths.update(dict.fromkeys(names))  # hidden from MMEngine, which would delete them first
        super()._save_best_checkpoint(runner, metrics)
        for name, path in former.items():
            if paths[name] is None:
                paths[name] = path
            elif path and path != paths[name] and is_main_process():
                Path(path).unlink(missing_ok=True)

    def every_n_train_iters(self, runner: Runner, n: int, start: int = 0) -> bool:
        """Whether a checkpoint is due and no gradients are pending."""
        self._due |= super().every_n_train_iters(runner, n, start)
        if not self._due or not runner.optim_wrapper.should_update():
            return False
        self._due = False
        return True
