"""Weight decay by parameter."""

import copy

from mmengine.optim import OptimWrapper
from torch import nn

from xmodal.engine.wrappers import unwrap
from xmodal.errors import ConfigError
from xmodal.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIM_WRAPPERS, OPTIMIZERS

# Embeddings with two or more dimensions that say where or what a token is.
_NO_DECAY = (
    'pos_embed',
    'position_embeddings.weight',
    'token_type_embeddings.weight',
    'image_position',
    'text_position',
    'cls_token',
    'mask_token',
    'table',
    'gamma',
)
# The vectors of TokenTypeEmbedding.
_TOKEN_TYPES = 'type_embeddings'


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class NoDecayConstructor:
    """Weight decay for matrices only.

    Norms, biases, temperatures, LayerScale vectors and position embeddings are not decayed. (ALBEF
    decays its temperature, a 0-d tensor, and the ViT's position embedding by mistake.)

    Args:
        optim_wrapper_cfg: config of the wrapper, with ``optimizer``.
        paramwise_cfg: ``decay_token_types=True`` decays the token type embeddings too, as EMKUM
            does; there is no other option.

    Raises:
        ConfigError: if ``paramwise_cfg`` has another key.
    """

    def __init__(self, optim_wrapper_cfg: dict, paramwise_cfg: dict | None = None) -> None:
        options = dict(paramwise_cfg or {})
        self.decay_token_types = options.pop('decay_token_types', False)
        if options:
            raise ConfigError(
                f'optim_wrapper.paramwise_cfg has {sorted(options)}, but NoDecayConstructor takes '
                "only decay_token_types: remove it, or set optim_wrapper.constructor='"
                "DefaultOptimWrapperConstructor'"
            )
        self.wrapper_cfg = copy.deepcopy(dict(optim_wrapper_cfg))
        self.optimizer_cfg = self.wrapper_cfg.pop('optimizer')

    def __call__(self, model: nn.Module) -> OptimWrapper:
        """Builds the wrapped optimizer of a model's trainable parameters."""
        decayed, undecayed = [], []
        for name, parameter in unwrap(model).named_parameters():
            if parameter.requires_grad:
                is_undecayed = leaves_undecayed(name, parameter, self.decay_token_types)
                (undecayed if is_undecayed else decayed).append(parameter)
        groups = [{'params': decayed}, {'params': undecayed, 'weight_decay': 0.0}]
        groups = [group for group in groups if group['params']]
        optimizer = OPTIMIZERS.build({**self.optimizer_cfg, 'params': groups})
        self.wrapper_cfg.setdefault('type', 'SafeAmpOptimWrapper')
        return OPTIM_WRAPPERS.build({**self.wrapper_cfg, 'optimizer': optimizer})


def leaves_undecayed(name: str, parameter: nn.Parameter, decay_token_types: bool = False) -> bool:
    """Whether a parameter gets no weight decay."""
    if name.endswith(_TOKEN_TYPES):
        return not decay_token_types
    return parameter.ndim < 2 or name.endswith(_NO_DECAY)
