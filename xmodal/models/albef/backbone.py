"""Two encoders, a position and a fusion encoder: what every model of the ACE-RPE family shares."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from xmodal.models.necks.emde import EMDE
from xmodal.models.necks.position import Relation
from xmodal.models.necks.token_type import encode_typed
from xmodal.registry import MODELS
from xmodal.structures import Encoded, Fused, Tokens


class CrossModalBackbone(nn.Module):
    """What every backbone has: an encoder a modality, a position, a fusion encoder, and types.

    Args:
        image_encoder: config of an image encoder.
        text_encoder: config of a text encoder.
        fusion: config of a fusion encoder.
        position: config of the position plug-in inside it; depth, width and heads are the fusion
            encoder's.
        token_type: config of a :class:`TokenTypeEmbedding`, without its width; None for none.

    Raises:
        ValueError: when the three encoders differ in width.
    """

    def __init__(
        self,
        image_encoder: dict,
        text_encoder: dict,
        fusion: dict,
        position: dict,
        token_type: dict | None,
    ) -> None:
        super().__init__()
        self.image_encoder = MODELS.build(image_encoder)
        self.text_encoder = MODELS.build(text_encoder)
        self.fusion = MODELS.build(fusion)
        parts = ('image_encoder', 'text_encoder', 'fusion')
        widths = {name: getattr(self, name).embed_dims for name in parts}
        if len(set(widths.values())) > 1:
            found = ', '.join(f'{name} {width}' for name, width in widths.items())
            raise ValueError(
                f'the encoders and the fusion encoder must have one width, found {found}: set '
                'image_encoder.embed_dim (embed_dims of an encoder of regions), '
                'text_encoder.config.hidden_size and fusion.embed_dims to the same number'
            )
        sizes = {name: getattr(self.fusion, name) for name in ('depth', 'embed_dims', 'num_heads')}
        self.position = MODELS.build({**position, **sizes})
        self.token_type = None
        if token_type is not None:
            self.token_type = MODELS.build({**token_type, 'embed_dims': self.fusion.embed_dims})


class AlbefBackbone(CrossModalBackbone):
    """Encode each modality, relate them, fuse them; heads come after.

    Args:
        image_encoder: config of an image encoder.
        text_encoder: config of a text encoder.
        fusion: config of the fusion encoder; width and heads as the encoders' where not given.
        position: config of the position plug-in; depth, width and heads are the fusion encoder's.
        proj_dims: d, width of the contrastive vectors.
        pooling: config of a pooling, built once a modality, that makes the contrastive
            vectors from all real tokens but [CLS]; None takes [CLS] alone.
        token_type: config of a :class:`TokenTypeEmbedding`, without its width; None for none.

    Raises:
        ValueError: when the encoders and the fusion encoder differ in width, or the pooling can't
            be learned through.
    """

    def __init__(
        self,
        image_encoder: dict,
        text_encoder: dict,
        fusion: dict,
        position: dict,
        proj_dims: int = 256,
        pooling: dict | None = None,
        token_type: dict | None = None,
    ) -> None:
        super().__init__(image_encoder, text_encoder, fusion, position, token_type)
        self.image_pooling = self.text_pooling = None
        pooled_dims = self.fusion.embed_dims
        if pooling is not None:
            pooling = {**pooling, 'embed_dims': self.fusion.embed_dims}
            self.image_pooling, self.text_pooling = MODELS.build(pooling), MODELS.build(pooling)
            if isinstance(self.image_pooling, EMDE):
                raise ValueError(
                    'pooling=EMDE, a static sketch, lets no gradient of a contrastive loss '
                    'through: use TEMDE or another pooling'
                )
            pooled_dims = self.image_pooling.out_dims
        self.image_proj = nn.Linear(pooled_dims, proj_dims)
        self.text_proj = nn.Linear(pooled_dims, proj_dims)

    def init_weights(self) -> None:
        """Loads the encoders' pretrained weights, where the config names some."""
        self.image_encoder.init_weights()
        self.text_encoder.init_weights()

    def encode_image(self, images: Tensor) -> Encoded:
        """(B, 3, H, W) pixels to tokens (B, 1 + M, D) and vectors (B, d)."""
        tokens = self.image_tokens(images)
        return Encoded(tokens, self._vector(tokens, self.image_pooling, self.image_proj))

    def encode_text(self, input_ids: Tensor, attention_mask: Tensor) -> Encoded:
        """(B, N) word pieces to tokens (B, N, D) and vectors (B, d)."""
        tokens = self.text_tokens(input_ids, attention_mask)
        return Encoded(tokens, self._vector(tokens, self.text_pooling, self.text_proj))

    def image_tokens(self, images: Tensor, *mask: Tensor) -> Tokens:
        """Tokens of pixels, whose patches may be masked, as the encoder takes them."""
        return encode_typed(self.image_encoder, self.token_type, 'image', images, *mask)

    def text_tokens(self, input_ids: Tensor, attention_mask: Tensor) -> Tokens:
        """Tokens of word pieces."""
        return encode_typed(self.text_encoder, self.token_type, 'text', input_ids, attention_mask)

    def relate(self, image: Tokens, text: Tokens) -> Relation | None:
        """What the position plug-in finds between words and patches, row by row."""
        return self.position.relate(image, text)

    def fuse(self, image: Tokens, text: Tokens, pairs: Tensor | None = None, **need) -> Fused:
        """See :meth:`xmodal.models.fusion.FusionEncoder.forward`."""
        return self.fusion(image, text, self.position, pairs, **need)

    def fuse_several(self, images: list[Tokens], text: Tokens, **need) -> list[Fused]:
        """See :meth:`xmodal.models.fusion.FusionEncoder.fuse_several`."""
        return self.fusion.fuse_several(images, text, self.position, **need)

    @staticmethod
    def _vector(tokens: Tokens, pooling: nn.Module | None, projection: nn.Linear) -> Tensor:
        embeddings, mask = tokens.embeddings, tokens.attention_mask
        with torch.autocast(embeddings.device.type, enabled=False):
            if pooling is None:
                pooled = embeddings[:, 0].float()
            else:
                pooled = pooling(embeddings[:, 1:].float(), None if mask is None else mask[:, 1:])
            return normalize(projection(pooled), dim=-1)
