"""Activations that are recomputed in the backward pass instead of stored."""

from collections.abc import Callable, Iterable
from functools import partial, wraps

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from xmodal.errors import ConfigError


def recompute_activations(model: nn.Module, class_names: Iterable[str]) -> None:
    """Stores only the inputs of every module of the given classes.

    Gradients and names of parameters do not change; a step takes about a third longer.

    Args:
        model: changed in place.
        class_names: classes of modules whose ``forward`` is called:
            ``['Block', 'BertLayer', 'FusionLayer']``.

    Raises:
        ConfigError: if the model has no module of a class, or one has a batch norm that learns.
    """
    for module in find_modules('activation_checkpointing', model, class_names):
        if any(_is_learning_norm(part) for part in module.modules()):
            raise ConfigError(
                f"activation_checkpointing names '{type(module).__name__}', whose batch norms "
                'would count every batch twice: name modules without batch norm'
            )
        module.forward = _recomputed(module.forward)


def recompute_gelu(model: nn.Module) -> None:
    """Recomputes the GELU of every :class:`FeedForward` from the output of its first layer.

    Gradients do not change. The output of the GELU is a sixth of the activations of a layer.

    Args:
        model: changed in place. A ``FeedForward`` has a method ``activate``, which applies GELU and
            its second layer, ``fc2``.
    """
    for module in model.modules():
        if type(module).__name__ == 'FeedForward' and hasattr(module, 'activate'):
            # GELU draws no random numbers, LoRA in the second layer may.
            draws = any(isinstance(part, nn.Dropout) and part.p for part in module.fc2.modules())
            module.activate = partial(
                checkpoint, module.activate, use_reentrant=False, preserve_rng_state=draws
            )


def find_modules(
    key: str, model: nn.Module, class_names: Iterable[str], need_forward: bool = True
) -> list[nn.Module]:
    """Returns the modules of the given classes and of their subclasses, in the model's order.

    Args:
        key: the config's key, for the message of an error.
        model: the model.
        class_names: names of classes.
        need_forward: whether the modules must have a ``forward``, else methods will do.

    Raises:
        ConfigError: if the model has no module of a class, or a class lacks its ``forward``.
    """
    class_names = set(class_names)
    bases = {module: {base.__name__ for base in type(module).__mro__} for module in model.modules()}
    if missing := sorted(class_names.difference(*bases.values())):
        known = sorted({type(module).__name__ for module in bases})
        raise ConfigError(f'{key} names {missing}, but the model is made of {known}')
    modules = [module for module, names in bases.items() if names & class_names]
    kinds = map(type, modules)
    without_forward = {x.__name__ for x in kinds if x.forward is nn.Module.forward}
    if need_forward and without_forward:
        raise ConfigError(
            f'{key} names {sorted(without_forward)}, of which only methods are called: name the '
            'module that calls them'
        )
    return modules


def _is_learning_norm(module: nn.Module) -> bool:
    """Whether it is a batch norm that counts batches; those of a frozen part are in eval mode."""
    return isinstance(module, _BatchNorm) and (module.weight is None or module.weight.requires_grad)


def _recomputed(forward: Callable) -> Callable:
    @wraps(forward)
    def wrapper(*args, **kwargs):
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        return checkpoint(partial(forward, **kwargs), *args, use_reentrant=False)

    return wrapper
