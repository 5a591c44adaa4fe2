"""Activations that are computed again in the backward pass instead of kept."""

from collections.abc import Callable, Iterable
from functools import partial, wraps

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def recompute_activations(model: nn.Module, class_names: Iterable[str]) -> None:
    """Keeps only the inputs of every module of the named classes.

    Gradients and names of parameters stay as they are; a step takes about a third longer.

    Args:
        model: changed in place.
        class_names: classes of modules that are called as such, ``['Block', 'BertLayer']``.

    Raises:
        ValueError: when the model has no module of a class.
    """
    for module in find_modules('activation_checkpointing', model, class_names):
        module.forward = _recomputed(module.forward)


def find_modules(key: str, model: nn.Module, class_names: Iterable[str]) -> list[nn.Module]:
    """Modules by the names of their classes, in the model's order.

    Raises:
        ValueError: names the config's ``key``, and what there is, or what is never called as such.
    """
    class_names = set(class_names)
    known = {type(module).__name__ for module in model.modules()}
    if missing := sorted(class_names - known):
        raise ValueError(f'{key} names {missing}, but the model is made of {sorted(known)}')
    found = [module for module in model.modules() if type(module).__name__ in class_names]
    parts = {type(module).__name__ for module in found if not _is_called(module)}
    if parts:
        raise ValueError(
            f'{key} names {sorted(parts)}, of which only methods are called: name the module that '
            'calls them'
        )
    return found


def _is_called(module: nn.Module) -> bool:
    return type(module).forward is not nn.Module.forward


def _recomputed(forward: Callable) -> Callable:
    @wraps(forward)
    def wrapper(*args, **kwargs):
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        return checkpoint(partial(forward, **kwargs), *args, use_reentrant=False)

    return wrapper
