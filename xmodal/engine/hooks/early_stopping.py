"""Early stopping of runs that may be resumed."""

from mmengine.hooks import EarlyStoppingHook as _EarlyStoppingHook
from mmengine.runner import Runner

from xmodal.registry import HOOKS

KEY = 'early_stopping'  # of a checkpoint
_COUNTED = 'wait_count', 'best_score'


@HOOKS.register_module()
class EarlyStoppingHook(_EarlyStoppingHook):
    """MMEngine's early stopping, which a run that is resumed goes on with.

    MMEngine's forgets the best score and how long ago it was, so that a resumed run went on longer
    than one without interruption. Here a checkpoint has both, by the metric.

    Args:
        **others: see :class:`mmengine.hooks.EarlyStoppingHook`.
    """

    priority = 'LOW'  # before the checkpoint is saved again with its validation, as the best one

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Adds what was counted, and whether the run ends here."""
        counted = {name: getattr(self, name) for name in _COUNTED}
        counted['stop_training'] = runner.train_loop.stop_training
        checkpoint.setdefault(KEY, {})[self.monitor] = counted

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Goes on counting, unless the hook is new to the run."""
        if runner._resume and (counted := checkpoint.get(KEY, {}).get(self.monitor)):
            for name in _COUNTED:
                setattr(self, name, counted[name])
            runner.train_loop.stop_training |= counted['stop_training']
