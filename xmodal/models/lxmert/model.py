"""What the models of the LXMERT family share."""

from torch import Tensor, nn

from xmodal.models.base import CrossModalModel, check_vocabulary
from xmodal.models.layers import init_linear
from xmodal.models.lxmert.backbone import LxmertBackbone
from xmodal.registry import MODELS


class LxmertModel(CrossModalModel):
    """A :class:`LxmertBackbone`; a subclass adds its heads by :meth:`set_heads`.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`LxmertBackbone`.

    Raises:
        ValueError: when the tokenizer has more words than the text encoder, texts may be longer
            than the position takes, or a checkpoint is loaded that has nothing of the backbone.
    """

    def __init__(self, data_preprocessor: dict, backbone: dict) -> None:
        super().__init__(data_preprocessor)
        self.backbone = MODELS.build({'type': LxmertBackbone, **backbone})
        check_vocabulary(self.data_preprocessor, self.backbone.text_encoder)
        self.backbone.check_length(self.data_preprocessor.max_length)
        self.register_load_state_dict_pre_hook(_refuse_foreign_weights)

    def set_heads(self, heads: nn.ModuleDict) -> None:
        """Adds the heads, with BERT's initial weights."""
        self.heads = heads
        init_linear(self.heads, self.backbone.embed_dims)

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some."""
        self.backbone.init_weights()


def _refuse_foreign_weights(
    model: LxmertModel, state_dict: dict[str, Tensor], prefix: str, *_
) -> None:
    if not any(name.startswith(f'{prefix}backbone.') for name in state_dict):
        raise ValueError(
            f'the checkpoint has nothing for {type(model).__name__}: its weights are called '
            f"'{next(iter(state_dict), '')}' and the like, expected 'backbone.…'. Weights of "
            'LXMERT itself are converted by `xmodal convert-lxmert`'
        )
