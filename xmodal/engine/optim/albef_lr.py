"""ALBEF's learning rate."""

import math

from mmengine.optim import OptimWrapper, _ParamScheduler

from xmodal.engine.optim.schedules import SCALE
from xmodal.errors import ConfigError
from xmodal.registry import PARAM_SCHEDULERS

_ITERATIONS_A_STEP = 100  # ``step_size`` in the reference's training scripts


@PARAM_SCHEDULERS.register_module()
class AlbefLR(_ParamScheduler):
    """ALBEF's learning rate: a warm-up in steps of 100 iterations, then a cosine by epochs.

    As ``Pretrain.py`` and the fine-tuning scripts of ALBEF call ``scheduler/cosine_lr.py``. With
    the learning rate r of the optimizer, a run of E epochs has these rates:

    * epoch 0, iteration i: w + (r - w) · k / K, where k = ⌊(i - 1) / 100⌋ is at least 0 and at
      most K. A step is taken after iterations 0, 100, 200, …, so that the first has 101 iterations.
    * epoch e > 0, all iterations: m + (r - m) · (1 + cos(π e / E)) / 2.

    The warm-up is a part of epoch 0. If this epoch is shorter than the warm-up, the rate jumps to
    the cosine at the start of epoch 1, in the reference as here.

    Parameter groups with a share of the rate (``layer_decay``) have that share of w and m, too.

    Built with ``convert_to_iter_based=True``: the rate depends on the iteration and on the epoch.

    Args:
        optimizer: optimizer, or its wrapper.
        warmup_lr: w.
        warmup_steps: K, which the reference calls ``warmup_epochs``.
        eta_min: m.
        end: E, by default ``train_cfg.max_epochs``.
        epoch_length: iterations of an epoch, filled in by the runner.

    Raises:
        ConfigError: without ``convert_to_iter_based=True``.
    """

    def __init__(
        self,
        optimizer: OptimWrapper,
        warmup_lr: float,
        warmup_steps: int,
        eta_min: float,
        end: int,
        epoch_length: int | None = None,
    ) -> None:
        if epoch_length is None:
            raise ConfigError(
                "param_scheduler: type='AlbefLR' without convert_to_iter_based=True: add it, the "
                'rate changes within the first epoch'
            )
        self.warmup_lr, self.warmup_steps, self.eta_min = warmup_lr, warmup_steps, eta_min
        self.epochs, self.epoch_length = end, epoch_length
        super().__init__(optimizer, 'lr', end=end * epoch_length, by_epoch=False)

    @classmethod
    def build_iter_from_epoch(cls, **options) -> 'AlbefLR':
        """Builds the schedule; MMEngine calls this for ``convert_to_iter_based=True``."""
        return cls(**options)

    def _get_value(self) -> list[float]:
        """The rate of each parameter group in the coming iteration."""
        epoch = self.last_step // self.epoch_length
        rate_of = self._warm_up if epoch == 0 else self._cosine
        scales = [group.get(SCALE, 1.0) for group in self.optimizer.param_groups]
        pairs = zip(self.base_values, scales, strict=True)
        return [scale * rate_of(rate / scale) for rate, scale in pairs]

    def _warm_up(self, rate: float) -> float:
        step = max(self.last_step - 1, 0) // _ITERATIONS_A_STEP
        if step >= self.warmup_steps:
            return rate
        return self.warmup_lr + (rate - self.warmup_lr) * step / self.warmup_steps

    def _cosine(self, rate: float) -> float:
        progress = self.last_step // self.epoch_length / self.epochs
        return self.eta_min + (rate - self.eta_min) * (1 + math.cos(math.pi * progress)) / 2
