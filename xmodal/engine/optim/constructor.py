"""Weight decay and learning rate by parameter."""

import copy
import logging
import re
from collections import defaultdict

from mmengine.logging import print_log
from mmengine.optim import OptimWrapper
from torch import nn

from xmodal.engine.optim.schedules import SCALE
from xmodal.engine.wrappers import unwrap
from xmodal.errors import ConfigError
from xmodal.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIM_WRAPPERS, OPTIMIZERS

# Parameters with two or more dimensions that are no matrices, as libraries name them: embeddings of
# where or what a token is, and LayerScale of feature maps. Other modules name theirs, `undecayed`.
_NO_DECAY = (
    'pos_embed',
    'position_embeddings.weight',
    'position_embedding.weight',  # of CLIP and SigLIP
    'position_embedding_table',  # of Gemma
    'relative_attention_bias.weight',  # of MPNet
    'relative_position_bias_table',  # of Swin and BEiT
    'token_type_embeddings.weight',
    'cls_token',
    'reg_token',
    'mask_token',
    'layer_scale.gamma',  # of FastViT and SwiftFormer, with the next two
    'layer_scale_1.gamma',
    'layer_scale_2.gamma',
)
# The vectors of TokenTypeEmbedding.
_TOKEN_TYPES = 'type_embeddings'
_NUMBERED = re.compile(r'\.\d+\.')  # a parameter of a module in a list


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class NoDecayConstructor:
    """Weight decay for matrices only, and learning rates that fall towards an encoder's input.

    Norms, biases, temperatures, LayerScale vectors and position embeddings are not decayed, nor are
    the parameters that a module names in its attribute ``undecayed``. (ALBEF decays its
    temperature, a 0-d tensor, and the ViT's position embedding by mistake.)

    With a layer decay d, the rate of layer i of an encoder with L blocks is lr · d^(L + 1 - i), as
    in BEiT: the embeddings are layer 0, the blocks 1 to L; what follows them is layer L + 1 and
    has the whole rate, as everything outside of an encoder. Each encoder counts its own layers
    (:meth:`xmodal.models.backbones.Encoder.layer_distances`).

    Args:
        optim_wrapper_cfg: config of the wrapper, with ``optimizer``.
        paramwise_cfg: ``decay_token_types=True`` decays the token type embeddings too, as EMKUM
            does; ``layer_decay``, d, is above 0 and at most 1, the default; ``custom_keys``, as of
            MMEngine's constructor, has ``dict(lr_mult=m)`` by parts of parameters' names: the
            longest that a name contains multiplies its rate by m. No other option.

    Raises:
        ConfigError: if ``paramwise_cfg`` has another key or another layer decay, or a custom key is
            in no parameter's name or sets something else.
    """

    def __init__(self, optim_wrapper_cfg: dict, paramwise_cfg: dict | None = None) -> None:
        options = dict(paramwise_cfg or {})
        self.decay_token_types = options.pop('decay_token_types', False)
        self.layer_decay = options.pop('layer_decay', 1.0)
        self.custom_keys = options.pop('custom_keys', {})
        if options:
            raise ConfigError(
                f'optim_wrapper.paramwise_cfg has {sorted(options)}, but NoDecayConstructor takes '
                'only decay_token_types, layer_decay and custom_keys: remove it, or set '
                "optim_wrapper.constructor='DefaultOptimWrapperConstructor'"
            )
        if type(self.layer_decay) not in (int, float) or not 0 < self.layer_decay <= 1:
            raise ConfigError(
                f'optim_wrapper.paramwise_cfg.layer_decay={self.layer_decay!r}, expected a number '
                'above 0 and at most 1'
            )
        for key, value in self.custom_keys.items():
            if not _is_factor(value):
                raise ConfigError(
                    f"optim_wrapper.paramwise_cfg.custom_keys['{key}']={value!r}, expected "
                    'dict(lr_mult=…) with a number above 0'
                )
        self.wrapper_cfg = copy.deepcopy(dict(optim_wrapper_cfg))
        self.optimizer_cfg = self.wrapper_cfg.pop('optimizer')

    def __call__(self, model: nn.Module) -> OptimWrapper:
        """Builds the wrapped optimizer of a model's trainable parameters."""
        model = unwrap(model)
        scales = {} if self.layer_decay == 1 else layer_scales(model, self.layer_decay)
        factors = custom_scales([name for name, _ in model.named_parameters()], self.custom_keys)
        undecayed = undecayed_names(model, self.decay_token_types)
        groups: dict[tuple[float, bool], list] = defaultdict(list)
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                scale = scales.get(name, 1.0) * factors[name]
                groups[scale, name in undecayed].append(parameter)
        # The log shows the rate of the first group.
        order = sorted(groups, key=lambda key: (-key[0], key[1]))
        params = [self._group(*key, groups[key]) for key in order]
        optimizer = OPTIMIZERS.build({**self.optimizer_cfg, 'params': params})
        self.wrapper_cfg.setdefault('type', 'SafeAmpOptimWrapper')
        return OPTIM_WRAPPERS.build({**self.wrapper_cfg, 'optimizer': optimizer})

    def _group(self, scale: float, is_undecayed: bool, parameters: list[nn.Parameter]) -> dict:
        group: dict = {'params': parameters}
        if is_undecayed:
            group['weight_decay'] = 0.0
        if scale != 1:
            if 'lr' not in self.optimizer_cfg:
                raise ConfigError(
                    'optim_wrapper.optimizer has no lr, which lr_mult and layer_decay scale'
                )
            group |= {'lr': scale * self.optimizer_cfg['lr'], SCALE: scale}
        return group


def layer_scales(model: nn.Module, decay: float) -> dict[str, float]:
    """The factor d^(L + 1 - i) of the learning rate of each parameter of an encoder, by its name.

    Raises:
        ConfigError: if the model has no encoder with blocks.
    """
    scales: dict[str, float] = {}
    for prefix, encoder in model.named_modules():
        if hasattr(encoder, 'layer_distances'):
            distances = encoder.layer_distances()
            learned = [name for name, x in encoder.named_parameters() if x.requires_grad]
            if not any(distances.values()) and any(map(_NUMBERED.search, learned)):
                print_log(
                    f'layer_decay={decay}: {prefix} ({type(encoder).__name__}) has the whole rate, '
                    'as no list of its modules is called blocks, layers or h: call its blocks so, '
                    'or override layer_distances()',
                    'current',
                    logging.WARNING,
                )
            scales |= {f'{prefix}.{name}': decay**steps for name, steps in distances.items()}
    if all(scale == 1 for scale in scales.values()):
        raise ConfigError(
            f'optim_wrapper.paramwise_cfg.layer_decay={decay}, and no encoder of '
            f'{type(model).__name__} has blocks: remove it'
        )
    return scales


def _is_factor(value: object) -> bool:
    """Whether it is ``dict(lr_mult=m)``."""
    if not isinstance(value, dict) or set(value) != {'lr_mult'}:
        return False
    return type(value['lr_mult']) in (int, float) and value['lr_mult'] > 0


def custom_scales(names: list[str], custom_keys: dict[str, dict]) -> dict[str, float]:
    """The factor of the learning rate of each parameter: that of the longest key in its name.

    Raises:
        ConfigError: for a key that is in no name.
    """
    for key in custom_keys:
        if not any(key in name for name in names):
            raise ConfigError(
                f"optim_wrapper.paramwise_cfg.custom_keys['{key}']: no parameter of the model has "
                f'it in its name; names are such as {names[0]}'
            )
    longest_first = sorted(custom_keys, key=len, reverse=True)
    found = {name: next((key for key in longest_first if key in name), None) for name in names}
    return {name: custom_keys[key]['lr_mult'] if key else 1.0 for name, key in found.items()}


def undecayed_names(model: nn.Module, decay_token_types: bool = False) -> set[str]:
    """The names of a model's parameters that get no weight decay.

    Raises:
        ConfigError: if a module's ``undecayed`` names a parameter that it does not have.
    """
    named = set()
    for module in model.modules():
        if not (names := getattr(module, 'undecayed', ())):
            continue
        parameters = dict(module.named_parameters())
        for name in names:
            if name not in parameters:
                raise ConfigError(
                    f"{type(module).__name__}.undecayed names '{name}', expected parameters of "
                    f'it, which has {", ".join(parameters)}'
                )
            named.add(parameters[name])
    return {
        name
        for name, parameter in model.named_parameters()
        if parameter in named or _is_undecayed(name, parameter, decay_token_types)
    }


def _is_undecayed(name: str, parameter: nn.Parameter, decay_token_types: bool) -> bool:
    if name.endswith(_TOKEN_TYPES):
        return not decay_token_types
    return parameter.ndim < 2 or name.endswith(_NO_DECAY)
