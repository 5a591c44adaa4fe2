"""Whether a run has the hooks that its model needs, each once."""

from collections.abc import Sequence

from mmengine.hooks import Hook
from torch import nn

from xmodal.engine.hooks.delayed_heads import DelayedHeadsHook
from xmodal.engine.hooks.momentum import MomentumDistillationHook
from xmodal.engine.hooks.weight_ema import WeightEMAHook
from xmodal.engine.wrappers import unwrap
from xmodal.errors import ConfigError

_TWICE = {
    DelayedHeadsHook: 'the last one starts at once all heads that the others delay',
    MomentumDistillationHook: 'each would move the teacher, and the last one sets the weight α',
    WeightEMAHook: 'a checkpoint has one average',
}


def check_hooks(model: nn.Module, hooks: Sequence[Hook]) -> None:
    """Refuses hooks that would not do what their config says.

    Raises:
        ConfigError: when nothing moves a momentum teacher, whose keys would be those of the initial
            weights to the end, or there are two of a hook that does something else twice, as where
            a config adds one to those that it inherits.
    """
    counts = {kind: sum(isinstance(hook, kind) for hook in hooks) for kind in _TWICE}
    model = unwrap(model)
    # A plug-in's model may have either alone, as EMKUM has a teacher that does not move.
    has_teacher = hasattr(model, 'update_momentum') and getattr(model, 'teacher', None) is not None
    if has_teacher and not counts[MomentumDistillationHook]:
        raise ConfigError(
            'the model has a momentum teacher, and custom_hooks has no MomentumDistillationHook, '
            'without which it stays at the initial weights: add '
            "dict(type='MomentumDistillationHook', alpha=0.4) (alpha=0 for hard targets), or a "
            'hook of your own that extends it, or set model.momentum=None'
        )
    for kind, count in counts.items():
        if count > 1:
            raise ConfigError(
                f'custom_hooks has {count} of {kind.__name__}, and {_TWICE[kind]}: give one, with '
                'the values of both'
            )
