"""The collapse of triplet training, and a way round it."""

from mmengine.hooks import Hook
from mmengine.runner import Runner

from xmodal.engine.wrappers import unwrap
from xmodal.registry import HOOKS


@HOOKS.register_module()
class CollapseHook(Hook):
    """Names the plateau of a triplet loss in the log.

    With the hardest negatives of a batch of B a model can make all pairs score alike: the loss then
    stands at 2 · margin · B (51.2 for 0.2 and 128), which looks like a slow start and is not.

    Args:
        patience: iterations in a row on the plateau before it is named; every run begins there.
        tolerance: how near to it the loss is, as a share.
    """

    def __init__(self, patience: int = 300, tolerance: float = 0.02) -> None:
        self.patience, self.tolerance = patience, tolerance
        self.iterations = 0

    def before_train(self, runner: Runner) -> None:
        """Checks the head.

        Raises:
            TypeError: when the model's loss has no such plateau.
        """
        head = getattr(unwrap(runner.model), 'loss_module', None)
        if not hasattr(head, 'plateau'):
            raise TypeError(
                'CollapseHook watches a TripletLoss, but model.loss is '
                f'{type(head).__name__}: leave the hook out'
            )

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        """Counts the iterations on the plateau; warns where they become too many."""
        head, batch = unwrap(runner.model).loss_module, len(data_batch['data_samples'])
        plateau = head.plateau(batch)
        distance = abs(float(outputs['loss_triplet'].detach()) - plateau)
        self.iterations = self.iterations + 1 if distance < self.tolerance * plateau else 0
        if self.iterations and self.iterations % self.patience == 0:
            each = f' · {batch - 1} negatives' if head.negatives == 'sum' else ''
            runner.logger.warning(
                f'the triplet loss has stood at {plateau:g} = 2 · margin {head.margin:g} · batch '
                f'{batch}{each} for {self.iterations} iterations: all pairs score alike '
                '(collapse). Begin with mean negatives (custom_hooks: NegativesWarmupHook), lower '
                'the learning rate or warm it up, or train with InfoNCELoss'
            )


@HOOKS.register_module()
class NegativesWarmupHook(Hook):
    """Trains on the mean of all negatives first, then on those that the config names.

    Args:
        epochs: with mean negatives.
    """

    def __init__(self, epochs: int = 1) -> None:
        self.epochs = epochs

    def before_train(self, runner: Runner) -> None:
        """Remembers the config's choice.

        Raises:
            TypeError: when the model's loss has no negatives to choose.
        """
        head = getattr(unwrap(runner.model), 'loss_module', None)
        if not hasattr(head, 'negatives'):
            raise TypeError(
                'NegativesWarmupHook needs a TripletLoss, but model.loss is '
                f'{type(head).__name__}: leave the hook out'
            )
        self.negatives = head.negatives

    def before_train_epoch(self, runner: Runner) -> None:
        """Chooses the negatives of this epoch."""
        head = unwrap(runner.model).loss_module
        head.negatives = 'mean' if runner.epoch < self.epochs else self.negatives
