"""An average of the weights over the training, evaluated beside them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from mmengine.hooks import Hook
from mmengine.runner import BaseLoop, Runner
from torch import Tensor, nn

from xmodal.checkpoint_file import read_checkpoint
from xmodal.engine.loops.evaluation import SAVED_FILES, writers_of
from xmodal.engine.wrappers import unwrap
from xmodal.errors import ConfigError
from xmodal.registry import HOOKS

KEY = 'weight_ema'  # of a checkpoint


@HOOKS.register_module()
class WeightEMAHook(Hook):
    """Averages the trained weights, and evaluates the average wherever the weights are evaluated.

    After step t = 1, 2, … of the optimizer the average of the weights w is
    e_t = m_t e_{t-1} + (1 - m_t) w_t, with e_0 = w_0 and m_t = min(m, (1 + t) / (10 + t)), so that
    the average does not stay near the initial weights in a short run. Statistics of batch norms are
    those of the weights. Metrics of the average have the prefix ``ema/``. Files of rankings and
    predictions, and the results query by query, are those of the weights themselves. The average is
    part of a checkpoint, so that a run resumes exactly;
    ``tools/model_converters/final_weights.py --ema`` makes it the weights.

    Args:
        decay: m.

    Raises:
        ConfigError: for another decay than from 0 to below 1, or with ``fsdp``.
    """

    priority = 'HIGHEST'  # its metrics are there before the others log and compare them

    def __init__(self, decay: float = 0.999) -> None:
        if not 0 <= decay < 1:
            raise ConfigError(f'WeightEMAHook.decay={decay}, expected a number from 0 to below 1')
        self.decay, self.steps = decay, 0
        self.average: dict[str, Tensor] = {}

    def before_train(self, runner: Runner) -> None:
        """Starts from the weights that the run starts from, unless it is resumed."""
        if runner.sharded:
            raise ConfigError('WeightEMAHook averages whole weights: remove it, or fsdp')
        if not self.average:
            trained = _trained(runner.model)
            self.average = {name: value.detach().clone() for name, value in trained.items()}

    @torch.no_grad()
    def after_train_iter(self, runner: Runner, *_, **__) -> None:
        """Moves the average if the optimizer moved the weights."""
        if not runner.optim_wrapper.stepped:
            return
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        trained = _trained(runner.model)
        weights = [trained[name].detach() for name in self.average]
        torch._foreach_lerp_(list(self.average.values()), weights, 1 - decay)

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Adds the average."""
        weights = {name: value.cpu() for name, value in self.average.items()}
        checkpoint[KEY] = {'steps': self.steps, 'weights': weights}

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Takes the average of a run that is resumed.

        Raises:
            ValueError: when the checkpoint has none, or one of other weights.
        """
        if runner._resume:
            self._read(runner, checkpoint)

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        """Adds the metrics of the average."""
        self._evaluate(runner, runner.val_loop, metrics)

    def before_test(self, runner: Runner) -> None:
        """Takes the average in the checkpoint that is tested.

        Raises:
            ValueError: when the checkpoint has none, or one of other weights.
        """
        if not self.average and runner._load_from:
            self._read(runner, read_checkpoint(runner._load_from))

    def after_test_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        """Adds the metrics of the average."""
        self._evaluate(runner, runner.test_loop, metrics)

    def _read(self, runner: Runner, checkpoint: dict) -> None:
        trained, saved = _trained(runner.model), checkpoint.get(KEY) or {}
        weights = saved.get('weights', {})
        shapes = [{name: x.shape for name, x in part.items()} for part in (weights, trained)]
        if shapes[0] != shapes[1]:
            found = f'averages of {len(weights)} tensors' if weights else 'no averages of weights'
            raise ValueError(
                f'the checkpoint has {found}, and the model trains {len(trained)}: use the config '
                'that it was made with, or remove WeightEMAHook'
            )
        self.steps = saved['steps']
        self.average = {name: x.to(trained[name].device).clone() for name, x in weights.items()}

    def _evaluate(self, runner: Runner, loop: BaseLoop, metrics: dict[str, float] | None) -> None:
        """Runs a loop a second time, with the average in place of the weights and without hooks."""
        if not self.average:  # validated before training
            return
        hooks, runner._hooks = runner._hooks, []
        try:
            with _exchanged(_trained(runner.model), self.average), _without_files(loop):
                found = loop.run()
        finally:
            runner._hooks = hooks
        metrics.update({f'ema/{name}': value for name, value in found.items()})


def _trained(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: x for name, x in unwrap(model).named_parameters() if x.requires_grad}


@contextmanager
def _exchanged(weights: dict[str, nn.Parameter], average: dict[str, Tensor]) -> Iterator[None]:
    """Puts the average into the weights, and the weights into the average, and back."""

    def exchange() -> None:
        for name, value in average.items():
            weight = weights[name]
            weight.data, average[name] = value, weight.data

    exchange()
    try:
        yield
    finally:
        exchange()


@contextmanager
def _without_files(loop: BaseLoop) -> Iterator[None]:
    """Keeps a loop, and those that it is made of, from writing files and results by query again."""
    files = [
        (x, name, getattr(x, name))
        for x in writers_of(loop)
        for name in (*SAVED_FILES, 'queries')
        if hasattr(x, name)
    ]
    for writer, name, _ in files:
        setattr(writer, name, {} if name == 'queries' else None)
    try:
        yield
    finally:
        for writer, name, file in files:
            setattr(writer, name, file)
