"""When checkpoints are saved, and when they are deleted."""

from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.hooks import CheckpointHook
from mmengine.runner import Runner

from xmodal.arguments import accepted_parameters
from xmodal.engine.hooks.preemption import PREEMPTED
from xmodal.engine.work_dir import set_last_checkpoint
from xmodal.errors import ConfigError, no_key
from xmodal.registry import HOOKS


@HOOKS.register_module()
class ExactCheckpointHook(CheckpointHook):
    """MMEngine's checkpoint hook, with checkpoints from which a run resumes exactly.

    Accumulated gradients are not saved, so a checkpoint that is due between optimizer steps waits
    for the next step. A checkpoint is deleted only after the next one is complete.

    Args:
        max_keep_ckpts: see :class:`mmengine.hooks.CheckpointHook`; 1 is an error.
        **others: the other arguments of :class:`mmengine.hooks.CheckpointHook`.

    Raises:
        ConfigError: for a key that MMEngine's hook does not have, ``max_keep_ckpts=1``, or
            an ``out_dir``.
    """

    def __init__(self, max_keep_ckpts: int = -1, **others) -> None:
        if max_keep_ckpts == 1:
            raise ConfigError(
                'default_hooks.checkpoint.max_keep_ckpts=1 leaves nothing to go on from if the '
                'only checkpoint is damaged: keep at least 2'
            )
        # MMEngine accepts any key and passes it to the writer of the file, an epoch later.
        known, _ = accepted_parameters(CheckpointHook)
        if unknown := sorted(others.keys() - known.keys()):
            raise ConfigError(f'default_hooks.checkpoint {no_key(unknown[0], known)}')
        if others.get('out_dir'):
            raise ConfigError(
                f"default_hooks.checkpoint.out_dir='{others['out_dir']}': a run goes on from what "
                'is in its work_dir; leave it out, and give the other folder as work_dir'
            )
        super().__init__(max_keep_ckpts=max_keep_ckpts, **others)
        self._due = False

    def _save_checkpoint_with_step(self, runner: Runner, step: int, meta: dict) -> None:
        """Saves, names the checkpoint in ``last_checkpoint``, and deletes what it replaces.

        MMEngine's hook deletes before, and writes ``last_checkpoint`` in place.
        """
        hub, replaced = runner.message_hub, []
        if self.max_keep_ckpts > 0 and step not in self.keep_ckpt_ids:
            if len(self.keep_ckpt_ids) == self.max_keep_ckpts:
                replaced.append(self._path(self.keep_ckpt_ids.popleft()))
            self.keep_ckpt_ids.append(step)
            hub.update_info('keep_ckpt_ids', list(self.keep_ckpt_ids))
        if preempted := hub.runtime_info.get(PREEMPTED):
            replaced.append(Path(runner.work_dir, preempted))
            hub.update_info(PREEMPTED, '')
        path = self._path(step)
        self.last_ckpt = str(path)
        hub.update_info('last_ckpt', self.last_ckpt)
        runner.save_checkpoint(
            self.out_dir,
            path.name,
            save_optimizer=self.save_optimizer,
            save_param_scheduler=self.save_param_scheduler,
            meta=meta,
            by_epoch=self.by_epoch,
        )
        if is_main_process():
            set_last_checkpoint(runner.work_dir, path)
            for file in replaced:
                file.unlink(missing_ok=True)

    def _path(self, step: int) -> Path:
        return Path(self.out_dir, self.filename_tmpl.format(step))

    def _save_best_checkpoint(self, runner: Runner, metrics: dict) -> None:
        """Deletes the former best checkpoint after the new one is complete, not before.

        Raises:
            ConfigError: when the validation has no metric of the name, or it has to be known
                whether more or less of it is better.
        """
        if not self.save_best:
            return
        for name in self.key_indicators:
            if name != 'auto' and name not in metrics:
                raise ConfigError(
                    f"default_hooks.checkpoint.save_best names '{name}', and the metrics of the "
                    f'validation are {", ".join(metrics)}'
                )
        # MMEngine keeps one path, or a path for each of several metrics.
        has_many = len(self.key_indicators) > 1
        paths = self.best_ckpt_path_dict if has_many else vars(self)
        names = self.key_indicators if has_many else ['best_ckpt_path']
        former = {name: paths[name] for name in names}
        paths.update(dict.fromkeys(names))  # hidden from MMEngine, which would delete them first
        try:
            super()._save_best_checkpoint(runner, metrics)
        except ValueError as error:
            if 'auto' not in self.key_indicators:
                raise
            raise ConfigError(
                f"default_hooks.checkpoint.save_best='auto' is '{next(iter(metrics))}': {error} "
                "Write rule='greater' or rule='less', and for another metric its name, of "
                f'{", ".join(metrics)}'
            ) from error
        for name, path in former.items():
            if paths[name] is None:
                paths[name] = path
            elif path and Path(path).name != Path(paths[name]).name and is_main_process():
                # Of this folder: the run may have been moved, or resumed from another's checkpoint.
                Path(self.out_dir, Path(path).name).unlink(missing_ok=True)

    def every_n_train_iters(self, runner: Runner, n: int, start: int = 0) -> bool:
        """Whether a checkpoint is due and no gradients are pending."""
        self._due |= super().every_n_train_iters(runner, n, start)
        if not self._due or not runner.optim_wrapper.should_update():
            return False
        self._due = False
        return True
