"""Early stopping of runs that may be resumed."""

from mmengine.hooks import EarlyStoppingHook as _EarlyStoppingHook
from mmengine.runner import Runner

from xmodal.errors import ConfigError
from xmodal.registry import HOOKS

KEY = 'early_stopping'  # of a checkpoint
_COUNTED = 'wait_count', 'best_score'


@HOOKS.register_module()
class EarlyStoppingHook(_EarlyStoppingHook):
    """MMEngine's early stopping, which a run that is resumed goes on with.

    MMEngine's forgets the best score and how long ago it was, so that a resumed run went on longer
    than one without interruption. Here a checkpoint has both, by the metric.

    Args:
        monitor: name of the metric.
        strict: whether a metric that the validation does not have is an error. MMEngine's default
            is False: a run whose ``monitor`` has a typing error would never stop.
        **others: see :class:`mmengine.hooks.EarlyStoppingHook`.
    """

    priority = 'LOW'  # before the checkpoint is saved again with its validation, as the best one

    def __init__(self, monitor: str, strict: bool = True, **others) -> None:
        super().__init__(monitor, strict=strict, **others)

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float]) -> None:
        """Counts, and stops the run.

        Raises:
            ConfigError: when the validation does not have the metric.
        """
        if self.strict and self.monitor not in metrics:
            raise ConfigError(
                f"EarlyStoppingHook.monitor='{self.monitor}', and the metrics of the validation "
                f'are {", ".join(metrics)}'
            )
        super().after_val_epoch(runner, metrics)

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
