"""Models inside of what MMEngine wraps around them."""

from mmengine.model import is_model_wrapper
from torch import nn


def unwrap(model: nn.Module) -> nn.Module:
    """The model itself, without the wrapper that it has in a run of several processes."""
    return model.module if is_model_wrapper(model) else model
