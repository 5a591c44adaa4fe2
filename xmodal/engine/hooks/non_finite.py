"""Losses and gradients that are not finite."""

from mmengine.hooks import Hook
from mmengine.runner import Runner

from xmodal.engine.optim import SafeAmpOptimWrapper
from xmodal.engine.wrappers import batch_norm_statistics
from xmodal.errors import ConfigError
from xmodal.registry import HOOKS


@HOOKS.register_module()
class NonFiniteHook(Hook):
    """Ends a run after several consecutive steps with a loss or gradient that is not finite.

    A single such step is skipped (:class:`xmodal.engine.optim.SafeAmpOptimWrapper`). This hook
    then also restores the running statistics of batch norms.

    Args:
        limit: number of consecutive skipped steps that ends the run.
    """

    def __init__(self, limit: int = 3) -> None:
        self.limit = limit

    def before_train(self, runner: Runner) -> None:
        """Finds the batch norms.

        Raises:
            ConfigError: when the optimizer takes steps that are not finite.
        """
        if not isinstance(runner.optim_wrapper, SafeAmpOptimWrapper):
            raise ConfigError(
                f'NonFiniteHook found optim_wrapper of type {type(runner.optim_wrapper).__name__}, '
                "which skips no step: write optim_wrapper.type='SafeAmpOptimWrapper'"
            )
        self._statistics = list(batch_norm_statistics(runner.model))

    def before_train_iter(self, runner: Runner, *_, **__) -> None:
        """Saves the running statistics."""
        self._before = [value.clone() for value in self._statistics]

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict, outputs: dict
    ) -> None:
        """Reports a skipped step, and ends the run at the limit."""
        if not runner.optim_wrapper.not_finite:
            return
        skipped = runner.optim_wrapper.skipped_in_a_row
        for value, before in zip(self._statistics, self._before, strict=True):
            value.copy_(before)
        losses = ', '.join(f'{k} {float(v.detach()):g}' for k, v in outputs.items() if 'loss' in k)
        samples = [f'{s.image_path}: {s.text!r}' for s in data_batch['data_samples']]
        problem = f'loss or gradient not finite at iteration {runner.iter + 1} ({losses})'
        if skipped < self.limit:
            runner.logger.warning(f'{problem}; step skipped. First of the batch: {samples[0]}')
            return
        listed = '\n  '.join(samples[:32])
        raise RuntimeError(
            f'{problem}, {skipped} in a row. Lower the learning rate, clip gradients '
            '(optim_wrapper.clip_grad), or look for broken samples in the batch:\n  ' + listed
        )
