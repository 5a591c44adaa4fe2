"""Whether a run has the hooks that its model needs, each once."""

from collections.abc import Sequence

from mmengine.hooks import Hook
from torch import nn

from xmodal.engine.hooks.delayed_heads import DelayedHeadsHook
from xmodal.engine.hooks.momentum import MomentumDistillationHook, require_moved_teacher
from xmodal.engine.hooks.weight_ema import WeightEMAHook
from xmodal.errors import ConfigError

_TWICE = {
    DelayedHeadsHook: 'the last one starts at once all heads that the others delay',
    MomentumDistillationHook: 'each would move the teacher, and the last one sets the weight α',
    WeightEMAHook: 'a checkpoint has one average',
}


def check_hooks(model: nn.Module, hooks: Sequence[Hook]) -> None:
    """Refuses hooks that would not do what their config says.

    Raises:
        ConfigError: when nothing moves a momentum teacher, or there are two of a hook that does
            something else twice, as where a config adds one to those that it inherits.
    """
    require_moved_teacher(model, hooks)
    for kind, reason in _TWICE.items():
        count = sum(isinstance(hook, kind) for hook in hooks)
        if count > 1:
            raise ConfigError(
                f'custom_hooks has {count} of {kind.__name__}, and {reason}: give one, with the '
                'values of both'
            )
