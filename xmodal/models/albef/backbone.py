"""The backbone of the ALBEF family: two encoders with projections, a position and fusion."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from xmodal.errors import ConfigError
from xmodal.models.backbones import BertTextEncoder
from xmodal.models.base import CrossModalBackbone, encode
from xmodal.models.fusion import FusionEncoder
from xmodal.models.layers import build_pooling, make_projection, pool
from xmodal.models.necks import EMDE
from xmodal.structures import Encoded, Fused, Tokens


class AlbefBackbone(CrossModalBackbone):
    """Encodes each modality, relates them and fuses them; heads come after.

    Args:
        image_encoder: config of an image encoder: of pixels, [CLS] first, or of regions.
        text_encoder: config of a text encoder.
        fusion: config of a :class:`FusionEncoder`.
        position: config of the position plug-in; it gets the fusion encoder's depth, width and
            heads.
        proj_dims: d, width of the image and text embeddings.
        image_pooling: config of a pooling of all real image tokens but [CLS], to the input of the
            projection; None projects [CLS].
        text_pooling: the same of the text.
        hidden_dims: width of the feed-forward network of a :class:`ResidualProjection`; None for
            one linear layer.
        dropout: inside that network.
        image_adapter: config of a :class:`TokenAdapter`, for an image encoder of another width than
            the fusion encoder; the pooling comes before it. None for none.
        text_adapter: the same for the text encoder.
        word_layers: number of the text encoder's layers before its tokens go to the fusion encoder;
            None for all. After a few of them a word still means itself, more than its sentence. The
            embedding of a text is of all layers.
        token_type: config of a :class:`TokenTypeEmbedding`, without its width; None for none.

    Raises:
        ValueError: when the encoders and the fusion encoder differ in width, the latter is of
            another family, no gradient passes a pooling, or there is neither [CLS] nor a pooling.
    """

    def __init__(
        self,
        image_encoder: dict,
        text_encoder: dict,
        fusion: dict,
        position: dict,
        proj_dims: int = 256,
        image_pooling: dict | None = None,
        text_pooling: dict | None = None,
        hidden_dims: int | None = None,
        dropout: float = 0.0,
        image_adapter: dict | None = None,
        token_type: dict | None = None,
        text_adapter: dict | None = None,
        word_layers: int | None = None,
    ) -> None:
        super().__init__(
            image_encoder,
            text_encoder,
            fusion,
            position,
            token_type,
            image_adapter,
            text_adapter,
        )
        if not isinstance(self.fusion, FusionEncoder):
            raise ConfigError(
                f"backbone.fusion.type='{type(self.fusion).__name__}', expected a FusionEncoder, "
                'or a class based on it: the fusion encoders of other families take other inputs'
            )
        self.proj_dims, self.word_layers = proj_dims, word_layers
        if word_layers is not None:
            _check_word_layers(word_layers, self.text_encoder, self.token_type)
        for modality, encoder, pooling in (
            ('image', self.image_encoder, image_pooling),
            ('text', self.text_encoder, text_pooling),
        ):
            if pooling is None and not encoder.has_cls:
                raise ValueError(
                    f"{type(encoder).__name__} has no [CLS], of which the {modality}'s embedding "
                    f"is made: set backbone.{modality}_pooling, such as dict(type='MeanMaxPooling')"
                )
        widths = self.image_encoder.embed_dims, self.text_encoder.embed_dims
        self.image_pooling = _build_pooling('image_pooling', image_pooling, widths[0])
        self.text_pooling = _build_pooling('text_pooling', text_pooling, widths[1])
        self.image_proj, self.text_proj = (
            make_projection(pooling.out_dims if pooling else width, proj_dims, hidden_dims, dropout)
            for pooling, width in zip((self.image_pooling, self.text_pooling), widths, strict=True)
        )

    def init_weights(self) -> None:
        """Loads pretrained weights of encoders and fusion, where the config names some."""
        super().init_weights()
        self.fusion.init_weights()

    def encode_image(self, images: Tensor, need_tokens: bool = True) -> Encoded:
        """(B, 3, H, W) pixels to tokens (B, 1 + M, D), None without need, and embeddings (B, d)."""
        tokens = encode(self.image_encoder, self.token_type, 'image', images)
        embedding = _project(
            tokens, self.image_encoder.has_cls, self.image_pooling, self.image_proj
        )
        return Encoded(self.adapt(tokens, 'image') if need_tokens else None, embedding)

    def encode_text(
        self, input_ids: Tensor, attention_mask: Tensor, need_tokens: bool = True
    ) -> Encoded:
        """(B, N) word pieces to tokens (B, N, D), None without need, and embeddings (B, d)."""
        tokens = encode(self.text_encoder, self.token_type, 'text', input_ids, attention_mask)
        embedding = _project(tokens, self.text_encoder.has_cls, self.text_pooling, self.text_proj)
        if not need_tokens:
            return Encoded(None, embedding)
        if self.word_layers is not None:
            return Encoded(self.text_tokens(input_ids, attention_mask), embedding)
        return Encoded(self.adapt(tokens, 'text'), embedding)

    def image_tokens(self, images: Tensor, *mask: Tensor) -> Tokens:
        """Tokens of pixels, optionally with a patch mask and a mask token."""
        tokens = encode(self.image_encoder, self.token_type, 'image', images, *mask)
        return self.adapt(tokens, 'image')

    def text_tokens(self, input_ids: Tensor, attention_mask: Tensor) -> Tokens:
        """Tokens of word pieces."""
        words = input_ids, attention_mask
        if self.word_layers is None:
            tokens = encode(self.text_encoder, self.token_type, 'text', *words)
        else:
            tokens = self.text_encoder.encode_words(*words, self.word_layers)
        return self.adapt(tokens, 'text')

    def fuse(self, image: Tokens, text: Tokens, pairs: Tensor | None = None, **need) -> Fused:
        """See :meth:`xmodal.models.fusion.FusionEncoder.forward`."""
        return self.fusion(image, text, self.position, pairs, **need)

    def fuse_images(
        self, images: list[Tokens], text: Tokens, need_image: bool = True
    ) -> list[Fused]:
        """See :meth:`xmodal.models.fusion.FusionEncoder.fuse_images`."""
        return self.fusion.fuse_images(images, text, self.position, need_image)


def _check_word_layers(count: int, encoder: nn.Module, token_type: nn.Module | None) -> None:
    """Refuses a number of layers that the text encoder does not have.

    Raises:
        ConfigError: says what is expected.
    """
    if not isinstance(encoder, BertTextEncoder) or token_type is not None:
        raise ConfigError(
            f'backbone.word_layers={count} needs a BertTextEncoder without token types, found '
            f'{type(encoder).__name__}, token_type {type(token_type).__name__}'
        )
    layers = encoder.config.num_hidden_layers
    if not 0 <= count < layers:
        raise ConfigError(
            f'backbone.word_layers={count}, and the text encoder has {layers}: expected 0 to '
            f'{layers - 1}, or None for all of them'
        )


def _build_pooling(key: str, config: dict | None, embed_dims: int) -> nn.Module | None:
    """The pooling of a modality.

    Raises:
        ValueError: when no gradient passes it.
    """
    if config is None:
        return None
    pooling = build_pooling(config, embed_dims, f'backbone.{key}')
    if isinstance(pooling, EMDE):
        raise ValueError(
            f"backbone.{key}.type='EMDE' is a static sketch, which stops the gradient of a "
            "contrastive loss: use 'TEMDE' or another pooling"
        )
    return pooling


def _project(
    tokens: Tokens, has_cls: bool, pooling: nn.Module | None, projection: nn.Module
) -> Tensor:
    """The normalised embedding of a modality, (B, d)."""
    embeddings, mask = tokens.embeddings, tokens.attention_mask
    with torch.autocast(embeddings.device.type, enabled=False):
        if pooling is None:
            pooled = embeddings[:, 0].float()
        else:
            first = int(has_cls)
            mask = None if mask is None else mask[:, first:]
            pooled = pool(pooling, embeddings[:, first:].float(), mask)
        return normalize(projection(pooled), dim=-1)
