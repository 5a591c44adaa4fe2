"""What changes in a model as training goes on."""

from mmengine.hooks import Hook
from mmengine.runner import Runner

from xmodal.engine.wrappers import unwrap
from xmodal.registry import HOOKS


@HOOKS.register_module()
class MomentumDistillationHook(Hook):
    """Raises the weight of the teacher's soft targets and moves the teacher.

    A run that starts from the weights of another (``load_from``) starts with an empty queue: what
    that one left in it has identities of other data, which may be those of different images here.

    Args:
        alpha: α, the weight at the end of the ramp.
        ramp_epochs: epochs over which it rises from 0, linearly (ALBEF: the first).
    """

    def __init__(self, alpha: float = 0.4, ramp_epochs: int = 1) -> None:
        self.alpha, self.ramp_epochs = alpha, ramp_epochs

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Puts the model's own queue in the place of another run's."""
        model = unwrap(runner.model)
        if hasattr(model, 'queue') and not runner._resume:
            weights = checkpoint.get('state_dict', checkpoint)
            weights.update(model.queue.state_dict(prefix='queue.'))

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict | None = None
    ) -> None:
        """Sets the weight of this iteration."""
        ramp = self.ramp_epochs * len(runner.train_dataloader)
        unwrap(runner.model).distillation_weight = self.alpha * min(1.0, runner.iter / max(ramp, 1))

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        """Moves the teacher, where the optimizer moved the student."""
        if runner.optim_wrapper.stepped:
            unwrap(runner.model).update_momentum()


@HOOKS.register_module()
class DelayedHeadsHook(Hook):
    """Lets some heads begin after the first epochs.

    Matching and masked prediction say little to encoders that are still random, and their
    gradients drown the contrastive loss, which does. Where the encoders start from pretrained
    weights, as in the papers, all heads begin together and this hook is not needed. With several
    processes it needs ``find_unused_parameters=True``.

    Args:
        epochs: by head, the whole epochs before it begins: ``dict(itm=3, mlm=3)``.
    """

    def __init__(self, epochs: dict[str, int]) -> None:
        self.epochs = epochs

    def before_train(self, runner: Runner) -> None:
        """Checks the names.

        Raises:
            ValueError: when a name is no head of the model.
        """
        heads = set(runner.cfg.model.heads)  # with those that the config leaves out by None
        if unknown := sorted(set(self.epochs) - heads):
            raise ValueError(
                f'DelayedHeadsHook.epochs names {unknown}, but the heads are {sorted(heads)}'
            )

    def before_train_epoch(self, runner: Runner) -> None:
        """Chooses the heads of this epoch."""
        model = unwrap(runner.model)
        model.active_heads = frozenset(
            name for name in model.heads if runner.epoch >= self.epochs.get(name, 0)
        )
