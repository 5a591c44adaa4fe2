"""The part that the models with a fusion encoder share: encoders, position, fusion encoder."""

from torch import nn

from xmodal.errors import ConfigError
from xmodal.models.backbones.encoder import Encoder, build_encoder
from xmodal.models.necks.position import NoPosition
from xmodal.models.necks.token_type import TokenTypeEmbedding
from xmodal.registry import MODELS
from xmodal.structures import Tokens


class CrossModalBackbone(nn.Module):
    """An encoder a modality, token types, a position and a fusion encoder.

    Args:
        image_encoder: config of an image encoder.
        text_encoder: config of a text encoder.
        fusion: config of a fusion encoder.
        position: config of the position plug-in; it gets the fusion encoder's depth, width and
            heads.
        token_type: config of a :class:`TokenTypeEmbedding`, without its width; None for none.
        image_adapter: config of a :class:`TokenAdapter`, without its widths; None for none.
        text_adapter: the same for the text encoder.

    Raises:
        ValueError: when the three encoders differ in width.
        ConfigError: when an encoder or the position extends another class than those of their
            kind, or the text encoder does not say how many words it knows.
    """

    def __init__(
        self,
        image_encoder: dict,
        text_encoder: dict,
        fusion: dict,
        position: dict,
        token_type: dict | None,
        image_adapter: dict | None = None,
        text_adapter: dict | None = None,
    ) -> None:
        super().__init__()
        self.image_encoder = build_encoder(image_encoder, 'backbone.image_encoder')
        self.text_encoder = build_encoder(text_encoder, 'backbone.text_encoder')
        self.fusion = MODELS.build(fusion)
        width = self.fusion.embed_dims
        self.image_adapter = _build_adapter(image_adapter, self.image_encoder, width)
        self.text_adapter = _build_adapter(text_adapter, self.text_encoder, width)
        widths = {}
        if image_adapter is None:
            widths['image_encoder'] = self.image_encoder.embed_dims
        if text_adapter is None:
            widths['text_encoder'] = self.text_encoder.embed_dims
        widths['fusion'] = width
        if len(set(widths.values())) > 1:
            listed = ', '.join(f'{name} {width}' for name, width in widths.items())
            raise ValueError(
                f'the encoders and the fusion encoder must have one width, found {listed}: set '
                'image_encoder.embed_dim (embed_dims of an encoder of regions), '
                'text_encoder.config.hidden_size and fusion.embed_dims to the same number, or '
                "bring tokens to it by image_adapter=dict(type='TokenAdapter') or text_adapter"
            )
        if token_type is not None and (self.image_adapter or self.text_adapter):
            raise ValueError(
                'backbone.token_type has one width for image and text: set either it, or '
                'backbone.image_adapter and backbone.text_adapter, to None'
            )
        if not hasattr(self.text_encoder, 'vocab_size'):
            raise ConfigError(
                f'{type(self.text_encoder).__name__} has no vocab_size, the number of words that '
                'it knows: the text encoder of a fusion encoder says it'
            )
        sizes = {name: getattr(self.fusion, name) for name in ('depth', 'embed_dims', 'num_heads')}
        self.position = MODELS.build({**position, **sizes})
        if not isinstance(self.position, NoPosition):
            raise ConfigError(
                f"backbone.position.type='{type(self.position).__name__}' is no position: extend "
                'NoPosition, whose methods do nothing, and override those that you need '
                '(docs/plugins.md)'
            )
        encoders = self.image_encoder, self.text_encoder
        self.token_type = build_token_type(token_type, width, *encoders)

    def adapt(self, tokens: Tokens, modality: str) -> Tokens:
        """The tokens of an encoder (B, L, F) in the fusion encoder's width (B, L, D).

        Raises:
            ValueError: when an adapter makes others of them.
        """
        adapter = self.image_adapter if modality == 'image' else self.text_adapter
        if adapter is None:
            return tokens
        adapted = adapter(tokens.embeddings)
        expected = *tokens.embeddings.shape[:2], self.fusion.embed_dims
        if adapted.shape != expected:
            raise ValueError(
                f'{type(adapter).__name__}, an adapter, makes the shape {tuple(adapted.shape)}, '
                f'expected {expected}: it changes the width of tokens alone. What changes their '
                'number is an Encoder around another one'
            )
        return tokens.with_embeddings(adapted)

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that a head may ask for, of images those that their encoder has."""
        names = ('patch_size', 'feature_dims')  # of pixels, of features computed before
        encoder = self.image_encoder
        return {
            'embed_dims': self.fusion.embed_dims,
            'vocab_size': self.text_encoder.vocab_size,
            **{name: getattr(encoder, name) for name in names if hasattr(encoder, name)},
        }

    def check_length(self, longest: int | None) -> None:
        """Raises ValueError for texts of ``longest`` tokens, if the position takes shorter ones."""
        most = self.position.max_length
        if None not in (longest, most) and longest > most:
            raise ValueError(
                f'data_preprocessor.max_length={longest}, but backbone.position.max_length={most}: '
                'lower the one or raise the other'
            )

    def init_weights(self) -> None:
        """Loads the encoders' pretrained weights, where the config names some."""
        self.image_encoder.init_weights()
        self.text_encoder.init_weights()


def _build_adapter(config: dict | None, encoder: Encoder, embed_dims: int) -> nn.Module | None:
    """The adapter of an encoder's tokens to the width of the fusion encoder."""
    if config is None:
        return None
    return MODELS.build({**config, 'in_dims': encoder.embed_dims, 'embed_dims': embed_dims})


def build_token_type(
    config: dict | None, embed_dims: int, *encoders: Encoder
) -> TokenTypeEmbedding | None:
    """The token types of encoders of one width; None for none.

    Raises:
        ConfigError: when they act before the blocks of an encoder that does not give what enters
            them.
    """
    if config is None:
        return None
    token_type = MODELS.build({**config, 'embed_dims': embed_dims})
    unfit = [type(e).__name__ for e in encoders if not e.has_block_inputs]
    if unfit and token_type.position == 'pre_encoder':
        raise ConfigError(
            "token_type.position='pre_encoder' acts on what enters an encoder's first block, which "
            f"{' and '.join(unfit)} keeps to itself: take position='post_encoder'"
        )
    return token_type
