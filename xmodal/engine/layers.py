"""What a run does with the layers of a model: they are recomputed, and compiled."""

from collections.abc import Callable, Iterable
from functools import partial, reduce, wraps

import torch
from mmengine.config import Config
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from xmodal.errors import ConfigError


def prepare_layers(model: nn.Module, config: Config) -> None:
    """Does what a config asks for; docs/training.md lists the keys.

    Args:
        model: changed in place.
        config: of a run. Keys that MMEngine has for something else are taken out.
    """
    # MMEngine reads the same key, but passes on no keyword arguments.
    if class_names := config.pop('activation_checkpointing', None):
        recompute_activations(model, class_names)
    if config.get('recompute_gelu', True):
        recompute_gelu(model)
    if isinstance(config.get('compile'), list):  # else MMEngine compiles the whole step
        compile_layers(model, config.pop('compile'))


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


def compile_layers(model: nn.Module, names: Iterable[str]) -> None:
    """Compiles every module of the given classes, also the momentum teacher's.

    Layers of one class share a program. What only surrounds the layers runs as it is.

    Args:
        model: changed in place; names of parameters stay.
        names: classes of modules whose ``forward`` is called, or methods of theirs or of a part:
            ``['Block', 'FusionLayer.attend_self', 'FusionLayer.cross_attention.project']``.

    Raises:
        ConfigError: if the model has no module of a class, or the class no such method.
    """
    _set_up_compiler()
    for name in names:
        class_name, _, path = name.partition('.')
        for module in find_modules('compile', model, [class_name], not path):
            if not path:
                module.compile()
                continue
            *parts, method = path.split('.')
            owner = reduce(lambda part, attribute: getattr(part, attribute, None), parts, module)
            if not hasattr(owner, method):
                raise ConfigError(f"compile names '{name}', but a {class_name} has no '{path}'")
            setattr(owner, method, torch.compile(getattr(owner, method)))


def _set_up_compiler() -> None:
    # A class has a program for each of: with gradients or without, masks or none, shapes.
    torch._dynamo.config.recompile_limit = 64
    # One kernel for both sums of a layer norm's backward pass takes six times what its bytes need.
    settings = torch._inductor.config.triton
    if hasattr(settings, 'mix_order_reduction'):  # later than PyTorch 2.7
        settings.mix_order_reduction = False


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
