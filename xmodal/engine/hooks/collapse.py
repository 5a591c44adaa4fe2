"""The collapse of triplet training, and how to avoid it."""

from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import nn

from xmodal.engine.wrappers import unwrap
from xmodal.errors import ConfigError
from xmodal.registry import HOOKS

TOLERANCE = 0.02  # largest relative distance between a loss and its plateau
PATIENCE = 300  # iterations on the plateau before the warning; every run begins there


@HOOKS.register_module()
class CollapseHook(Hook):
    """Warns when a triplet loss stays on its plateau.

    With the hardest negatives of a batch of B, a model may give all pairs the same score. The loss
    then stays at 2 · margin · B (51.2 for 0.2 and 128), which looks like a slow start but is a
    collapse.
    """

    def __init__(self) -> None:
        self.iterations = 0

    def before_train(self, runner: Runner) -> None:
        """Checks the loss.

        Raises:
            ConfigError: if the model's loss has no such plateau.
        """
        _triplet_loss(self, runner, 'plateau')

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict, outputs: dict
    ) -> None:
        """Counts the iterations on the plateau, and warns every ``PATIENCE`` iterations."""
        loss, batch = unwrap(runner.model).loss_module, len(data_batch['data_samples'])
        plateau = loss.plateau(batch)
        distance = abs(float(outputs['loss_triplet'].detach()) - plateau)
        self.iterations = self.iterations + 1 if distance < TOLERANCE * plateau else 0
        if self.iterations and self.iterations % PATIENCE == 0:
            each = f' · {batch - 1} negatives' if loss.negatives == 'sum' else ''
            runner.logger.warning(
                f'the triplet loss has been {plateau:g} = 2 · margin {loss.margin:g} · batch '
                f'{batch}{each} for {self.iterations} iterations: all pairs have the same score '
                '(collapse). Start with mean negatives (custom_hooks: NegativesWarmupHook), lower '
                'the learning rate or warm it up, or train with InfoNCELoss'
            )


@HOOKS.register_module()
class NegativesWarmupHook(Hook):
    """Trains on the mean of all negatives first, and then on the negatives that the config chooses.

    Args:
        epochs: number of epochs with mean negatives.
    """

    def __init__(self, epochs: int = 1) -> None:
        self.epochs = epochs

    def before_train(self, runner: Runner) -> None:
        """Saves the choice of the config, and warns when no epoch trains on it.

        Raises:
            ConfigError: if the model's loss has no choice of negatives.
        """
        self.negatives = _triplet_loss(self, runner, 'negatives').negatives
        if self.epochs >= runner.max_epochs:
            runner.logger.warning(
                f"no epoch trains on the negatives '{self.negatives}': NegativesWarmupHook.epochs="
                f'{self.epochs}, and the run has {runner.max_epochs} epoch(s)'
            )

    def before_train_epoch(self, runner: Runner) -> None:
        """Sets the negatives of this epoch."""
        loss = unwrap(runner.model).loss_module
        loss.negatives = 'mean' if runner.epoch < self.epochs else self.negatives


def _triplet_loss(hook: Hook, runner: Runner, attribute: str) -> nn.Module:
    """The loss of the model, which must have an attribute of a triplet loss."""
    loss = getattr(unwrap(runner.model), 'loss_module', None)
    if not hasattr(loss, attribute):
        raise ConfigError(
            f'{type(hook).__name__} needs a TripletLoss, but model.loss is '
            f'{type(loss).__name__}: leave the hook out'
        )
    return loss
