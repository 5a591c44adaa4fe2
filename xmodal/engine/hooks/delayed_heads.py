"""Heads that start after the first epochs."""

from mmengine.hooks import Hook
from mmengine.runner import Runner

from xmodal.engine.wrappers import unwrap
from xmodal.errors import ConfigError
from xmodal.registry import HOOKS


@HOOKS.register_module()
class DelayedHeadsHook(Hook):
    """Starts some heads only after the first epochs.

    Random encoders learn little from matching and masked prediction, and the gradients of these
    heads drown the contrastive loss, from which the encoders do learn. If the encoders start from
    pretrained weights, as in the papers, all heads start together and this hook is not needed. With
    several processes it needs ``find_unused_parameters=True``.

    Args:
        epochs: number of epochs before a head starts, by head: ``dict(itm=3, mlm=3)``.
    """

    def __init__(self, epochs: dict[str, int]) -> None:
        self.epochs = epochs

    def before_train(self, runner: Runner) -> None:
        """Checks the names, and warns of heads that start after the end.

        Raises:
            ConfigError: if a name is not a head of the model.
        """
        heads = set(runner.cfg.model.heads)  # includes heads that are switched off by None
        if unknown := sorted(set(self.epochs) - heads):
            raise ConfigError(
                f'DelayedHeadsHook.epochs names {unknown}, but the heads are {sorted(heads)}'
            )
        trained, end = unwrap(runner.model).heads, runner.max_epochs
        if late := sorted(name for name in trained if self.epochs.get(name, 0) >= end):
            runner.logger.warning(
                f'the heads {late} are not trained: DelayedHeadsHook.epochs starts them after the '
                f'end of the run, which has {end} epoch(s)'
            )

    def before_train_epoch(self, runner: Runner) -> None:
        """Chooses the heads of this epoch."""
        heads = unwrap(runner.model).heads
        heads.active = frozenset(name for name in heads if runner.epoch >= self.epochs.get(name, 0))
