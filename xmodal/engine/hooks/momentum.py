"""The clock of momentum distillation."""

from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner

from xmodal.registry import HOOKS


@HOOKS.register_module()
class MomentumDistillationHook(Hook):
    """Raises the weight of the teacher's soft targets and moves the teacher.

    Args:
        alpha: α, the weight at the end of the ramp.
        ramp_epochs: epochs over which it rises from 0, linearly (ALBEF: the first).
    """

    def __init__(self, alpha: float = 0.4, ramp_epochs: int = 1) -> None:
        self.alpha, self.ramp_epochs = alpha, ramp_epochs

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict | None = None
    ) -> None:
        """Sets the weight of this iteration."""
        ramp = self.ramp_epochs * len(runner.train_dataloader)
        _unwrap(runner).distillation_weight = self.alpha * min(1.0, runner.iter / max(ramp, 1))

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:  # fmt: skip
        """Moves the teacher, where the optimizer moved the student."""
        if runner.optim_wrapper.stepped:
            _unwrap(runner).update_momentum()


def _unwrap(runner: Runner) -> object:
    return runner.model.module if is_model_wrapper(runner.model) else runner.model
