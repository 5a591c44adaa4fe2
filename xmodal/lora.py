"""LoRA by ``peft``: small trained matrices beside the frozen ones of any part of a model."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

from mmengine.model import BaseModel
from mmengine.registry import Registry
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from xmodal.arguments import unknown_key
from xmodal.errors import ConfigError

_KEPT = 'base_layer.'  # where peft keeps a linear layer beside which it puts two matrices


def with_lora(build: Callable) -> Callable:
    """Lets every module of a config have a key ``lora``: arguments of ``peft.LoraConfig``.

    ::

        text_encoder = dict(..., lora=dict(r=8, lora_alpha=16, target_modules=['query', 'value']))

    A linear layer W that ``target_modules`` names becomes W x + (α / r) B A x. Only A and B are
    trained. Batch norms of the module stay in eval mode.
    """

    def build_module(config: dict, default_args: dict | None = None, *, registry: Registry) -> Any:
        if not isinstance(config, dict) or config.get('lora') is None:
            config = {k: x for k, x in config.items() if k != 'lora'} if _has(config) else config
            return build(config, default_args, registry=registry)
        config = dict(config)
        options = config.pop('lora')
        if config.get('frozen'):
            raise ConfigError(
                f'{config["type"]} has both frozen and lora, which freezes all of it but its own '
                'matrices: leave out one of them'
            )
        module = build(config, default_args, registry=registry)
        if isinstance(module, BaseModel):
            raise ConfigError(
                f'lora of the whole {config["type"]}, expected in a part of it, such as '
                'model.backbone.text_encoder'
            )
        _insert(module, config['type'], options)
        return module

    return build_module


def merge_lora(model: nn.Module) -> None:
    """Replaces every pair of matrices by their product in the weights: W + (α / r) B A."""
    for name, layer in _find(model).items():
        if not layer.merged:  # one layer may have several names
            layer.merge()
        model.set_submodule(name, layer.get_base_layer())


def to_lora_names(state_dict: dict[str, Tensor], expected: Iterable[str]) -> dict[str, Tensor]:
    """Weights of a model without LoRA under their names in one with it.

    Args:
        state_dict: of a run without LoRA, or with it.
        expected: names of the model's own tensors.
    """
    names = {name.replace(_KEPT, ''): name for name in expected if _KEPT in name}
    return {names.get(name, name): value for name, value in state_dict.items()}


def require_merged(names: Iterable[str], expected: Collection[str], file: str | Path) -> None:
    """Refuses weights that LoRA has changed for a model that has no matrices beside them.

    They would start anew: a file has them under other names, and not how much the matrices count.

    Args:
        names: of the tensors of a file that a model does not have.
        expected: names of the model's own tensors.
        file: where the tensors come from.

    Raises:
        ConfigError: names the layer, and what to do.
    """
    for name in names:
        if _KEPT in name and name.replace(_KEPT, '') in expected:
            raise ConfigError(
                f'{file} was trained with LoRA in {name.partition("." + _KEPT)[0]}, and this model '
                'has none there: merge the matrices into the weights by `xmodal final-weights '
                f'CONFIG {file} OUT`, with the config of that run, and start from OUT; or give '
                'this config the same lora'
            )


def to_plain_name(name: str) -> str:
    """The name that a weight of a part with LoRA has in one without.

    Raises:
        ValueError: for one of the matrices.
    """
    if '.lora_' in name:
        raise ValueError(
            f'{name} is a matrix of LoRA, and only whole weights can be copied: merge it into them '
            'first (`xmodal final-weights`)'
        )
    return name.replace(_KEPT, '')


def _has(config: object) -> bool:
    return isinstance(config, dict) and 'lora' in config


def _find(module: nn.Module) -> dict[str, nn.Module]:
    """The layers with matrices beside them, by all their names; none without importing peft."""
    modules = module.named_modules(remove_duplicate=False)
    return {name: layer for name, layer in modules if isinstance(layer, _Marked)}


def _shared(module: nn.Module) -> list[list[str]]:
    """The names of each linear layer that has several."""
    names = defaultdict(list)
    for name, layer in module.named_modules(remove_duplicate=False):
        if isinstance(layer, nn.Linear):
            names[layer].append(name)
    return [of_layer for of_layer in names.values() if len(of_layer) > 1]


class _Marked:
    """Base of the layers with matrices beside them."""


@cache
def _linear_class() -> type[nn.Module]:
    from peft.tuners.lora import Linear

    class LoraLinear(_Marked, Linear):
        """peft's layer, whose ``weight`` is that of both: some layers here read it directly."""

        @property
        def weight(self) -> Tensor:
            weight = self.get_base_layer().weight
            names = [] if self.merged else self.active_adapters
            return sum((self.get_delta_weight(name) for name in names), weight)

    return LoraLinear


def _insert(module: nn.Module, kind: str, options: dict) -> None:
    """Puts the matrices beside the linear layers that are named.

    Raises:
        ConfigError: without peft, for wrong options, if no layer has a name, or if one that is not
            linear has.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        advice = f"pip install 'xmodal[lora]' ({error})"
        raise ConfigError(f'lora of {kind} needs peft: {advice}') from error
    shared = _shared(module)
    layers = [name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)]
    hint = f'its linear layers: {sorted({name.rpartition(".")[2] for name in layers})}'
    if not isinstance(options, dict) or not options.get('target_modules'):
        raise ConfigError(
            f'lora={options!r} of {kind}, expected dict(target_modules=[…]) with {hint}'
        )
    if problem := unknown_key(LoraConfig, list(options)):
        raise ConfigError(f'lora of {kind}: {problem}')
    try:
        lora = LoraConfig(**options)
        # The pretrained weights are loaded after this: what was made from W would be of another W.
        if lora.use_dora or lora.init_lora_weights not in (True, 'gaussian'):
            raise ValueError(
                'expected matrices whose product is zero before training: leave out use_dora, and '
                "init_lora_weights other than 'gaussian'"
            )
        lora._register_custom_module({nn.Linear: _linear_class()})
        inject_adapter_in_model(lora, module)
    except (TypeError, ValueError) as error:
        raise ConfigError(f'lora={options} of {kind} is refused: {error}; {hint}') from error
    if others := _others(module):
        more = f' and {len(others) - 3} more' if len(others) > 3 else ''
        raise ConfigError(
            f'lora={options} of {kind} makes something else of {", ".join(others[:3])}{more} than '
            "a linear layer with its matrices: name linear layers alone, as 'attn.proj' instead of "
            f"'proj' in a ViT, and leave out modules_to_save; {hint}"
        )
    for first, *others in shared:  # peft replaces a layer under the first of its names alone
        for name in others:
            module.set_submodule(name, module.get_submodule(first))
    for part in module.modules():
        if isinstance(part, _BatchNorm):
            part.is_frozen = True
    if hasattr(module, 'init_weights'):
        module.init_weights = partial(_init_weights, module)


def _others(module: nn.Module) -> list[str]:
    """Names of what peft wraps besides linear layers: it could not be merged into the weights."""
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils.other import AuxiliaryTrainingWrapper

    wrapped = BaseTunerLayer, AuxiliaryTrainingWrapper
    return [
        name
        for name, layer in module.named_modules()
        if isinstance(layer, wrapped) and not isinstance(layer, _Marked)
    ]


def _init_weights(module: nn.Module) -> None:
    """Loads pretrained weights into a module that is as it was without LoRA."""
    layers = _find(module)
    for name, layer in layers.items():
        module.set_submodule(name, layer.get_base_layer())
    type(module).init_weights(module)
    for name, layer in layers.items():
        module.set_submodule(name, layer)
