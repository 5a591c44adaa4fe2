"""What a run does with the layers of a model: they are recomputed, and compiled."""

from collections.abc import Iterable
from functools import reduce

import torch
from mmengine.config import Config
from torch import nn

from xmodal.engine.memory import find_modules, recompute_activations, recompute_gelu
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
