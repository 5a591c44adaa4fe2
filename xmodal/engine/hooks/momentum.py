"""The momentum teacher, and the weight of its soft targets."""

from mmengine.hooks import Hook
from mmengine.runner import Runner

from xmodal.engine.wrappers import share_moving_statistics, unwrap
from xmodal.errors import ConfigError, shortened
from xmodal.registry import HOOKS


@HOOKS.register_module()
class MomentumDistillationHook(Hook):
    """Updates the momentum teacher after each step, and ramps up the weight α of its soft targets.

    Args:
        alpha: α at the end of the ramp.
        ramp_epochs: epochs over which α rises linearly from 0 (in ALBEF the first epoch). With 0,
            α is the same from the first iteration on (ALBEF's SNLI-VE).

    Raises:
        ConfigError: for another α than from 0 to 1, of which targets would be negative.
    """

    def __init__(self, alpha: float = 0.4, ramp_epochs: int = 1) -> None:
        if not (isinstance(alpha, int | float) and 0 <= alpha <= 1):
            raise ConfigError(
                f'MomentumDistillationHook.alpha={shortened(alpha)}, expected a number from 0 to 1'
            )
        self.alpha, self.ramp_epochs = alpha, ramp_epochs

    def before_train_iter(self, runner: Runner, *_, **__) -> None:
        """Sets α for this iteration."""
        ramp = self.ramp_epochs * len(runner.train_dataloader)
        share = min(1.0, runner.iter / ramp) if ramp else 1.0
        unwrap(runner.model).distillation_weight = self.alpha * share

    def after_train_iter(self, runner: Runner, *_, **__) -> None:
        """Updates the teacher if the optimizer updated the student."""
        if runner.optim_wrapper.stepped:
            # The teacher takes the student's. They differ from rank to rank, and a checkpoint has
            # those of the first alone: a resumed run would go on with another teacher.
            share_moving_statistics(runner.model)
            unwrap(runner.model).update_momentum()
