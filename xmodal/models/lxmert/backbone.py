"""The backbone of LXMERT, and what all models with it share."""

from torch import Tensor, nn

from xmodal.models.albef.backbone import CrossModalBackbone
from xmodal.models.base.model import CrossModalModel
from xmodal.models.base.preprocessor import check_vocabulary
from xmodal.models.layers.encoder_layer import init_linear
from xmodal.models.necks.token_type import encode_typed
from xmodal.registry import MODELS
from xmodal.structures import Fused, Regions, RegionTextBatch, Tokens


class LxmertBackbone(CrossModalBackbone):
    """Object relationship encoder, language encoder and cross-modality encoder (LXMERT, Sec. 2).

    Args:
        image_encoder: config of an encoder of regions.
        text_encoder: config of a text encoder.
        fusion: config of the cross-modality encoder.
        position: config of the position plug-in inside it; depth, width and heads are the
            cross-modality encoder's.
        token_type: config of a :class:`TokenTypeEmbedding`, without its width; None for none.

    Raises:
        ValueError: when the encoders differ in width, or the position needs a grid of patches.
    """

    def __init__(
        self,
        image_encoder: dict,
        text_encoder: dict,
        fusion: dict,
        position: dict,
        token_type: dict | None = None,
    ) -> None:
        super().__init__(image_encoder, text_encoder, fusion, position, token_type)
        self.embed_dims = self.fusion.embed_dims
        if self.position.needs_grid:
            raise ValueError(
                f"backbone.position.type='{position['type']}' counts rows and columns of patches, "
                "and an image here is regions with boxes: expected 'none', 'uniform' or 'ace_rpe'"
            )
        self.pooler = nn.Linear(self.embed_dims, self.embed_dims)
        init_linear(self.pooler, self.embed_dims)

    def init_weights(self) -> None:
        """Loads the text encoder's pretrained weights, where the config names some."""
        self.text_encoder.init_weights()

    def encode_image(self, regions: Regions) -> Tokens:
        """Regions to tokens (B, R, D), without [CLS]."""
        return encode_typed(self.image_encoder, self.token_type, 'image', regions)

    def encode_text(self, input_ids: Tensor, attention_mask: Tensor) -> Tokens:
        """(B, 1 + N) word pieces to tokens (B, 1 + N, D)."""
        return encode_typed(self.text_encoder, self.token_type, 'text', input_ids, attention_mask)

    def fuse(self, image: Tokens, text: Tokens, **need) -> Fused:
        """See :meth:`xmodal.models.fusion.CrossModalityEncoder.forward`."""
        return self.fusion(image, text, self.position, **need)

    def pool(self, fused: Fused) -> Tensor:
        """The cross-modality output, (B, D): tanh of a linear layer on the fused [CLS]."""
        return self.pooler(fused.text_tokens[:, 0]).tanh()


class LxmertModel(CrossModalModel):
    """A backbone with heads.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`LxmertBackbone`.
        heads: configs by name, without their widths.

    Raises:
        ValueError: when the tokenizer knows more words than the text encoder, or a checkpoint is
            loaded that has nothing of the backbone.
    """

    def __init__(self, data_preprocessor: dict, backbone: dict, heads: dict[str, dict]) -> None:
        super().__init__(data_preprocessor)
        self.backbone = LxmertBackbone(**backbone)
        check_vocabulary(self.data_preprocessor.vocab_size, self.backbone.text_encoder)
        embed_dims = self.backbone.embed_dims
        self.heads = nn.ModuleDict()
        for name, head in heads.items():
            sizes = {'embed_dims': embed_dims, **self.head_sizes(name)}
            self.heads[name] = MODELS.build({**head, **sizes})
        init_linear(self.heads, embed_dims)
        self.register_load_state_dict_pre_hook(_refuse_foreign)

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some."""
        self.backbone.init_weights()

    def head_sizes(self, name: str) -> dict[str, int]:
        """The arguments of a head, beside the width, that follow from the backbone."""
        return {}

    def fuse(self, batch: RegionTextBatch, **need) -> Fused:
        """Encodes and fuses regions and texts row by row."""
        return self.backbone.fuse(
            self.backbone.encode_image(batch.regions),
            self.backbone.encode_text(batch.input_ids, batch.attention_mask),
            **need,
        )


def _refuse_foreign(model: LxmertModel, state_dict: dict[str, Tensor], prefix: str, *_) -> None:
    if not any(name.startswith(f'{prefix}backbone.') for name in state_dict):
        raise ValueError(
            f'the checkpoint has nothing for {type(model).__name__}: its weights are called '
            f"'{next(iter(state_dict), '')}' and the like, expected 'backbone.…'. Weights of "
            'LXMERT itself are converted by tools/model_converters/lxmert.py'
        )
