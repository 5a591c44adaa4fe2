"""The backbone of the ALBEF family: two encoders with projections, a position and fusion."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from xmodal.models.base import CrossModalBackbone, encode
from xmodal.models.necks import EMDE
from xmodal.registry import MODELS
from xmodal.structures import Encoded, Fused, Relation, Tokens


class AlbefBackbone(CrossModalBackbone):
    """Encodes each modality, relates them and fuses them; heads come after.

    Args:
        image_encoder: config of an image encoder.
        text_encoder: config of a text encoder.
        fusion: config of the fusion encoder.
        position: config of the position plug-in; it gets the fusion encoder's depth, width and
            heads.
        proj_dims: d, width of the image and text embeddings.
        pooling: config of a pooling, built once a modality, of all real tokens but [CLS] to the
            input of the projection; None projects [CLS].
        token_type: config of a :class:`TokenTypeEmbedding`, without its width; None for none.

    Raises:
        ValueError: when the encoders and the fusion encoder differ in width, or no gradient passes
            the pooling.
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
                    "backbone.pooling.type='EMDE' is a static sketch, which stops the gradient of "
                    "a contrastive loss: use 'TEMDE' or another pooling"
                )
            pooled_dims = self.image_pooling.out_dims
        self.image_proj = nn.Linear(pooled_dims, proj_dims)
        self.text_proj = nn.Linear(pooled_dims, proj_dims)

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that a head may ask for."""
        return {**super().sizes, 'patch_size': self.image_encoder.patch_size}

    def init_weights(self) -> None:
        """Loads pretrained weights of encoders and fusion, where the config names some."""
        super().init_weights()
        self.fusion.init_weights()

    def encode_image(self, images: Tensor) -> Encoded:
        """(B, 3, H, W) pixels to tokens (B, 1 + M, D) and embeddings (B, d)."""
        tokens = self.image_tokens(images)
        return Encoded(tokens, _project(tokens, self.image_pooling, self.image_proj))

    def encode_text(self, input_ids: Tensor, attention_mask: Tensor) -> Encoded:
        """(B, N) word pieces to tokens (B, N, D) and embeddings (B, d)."""
        tokens = self.text_tokens(input_ids, attention_mask)
        return Encoded(tokens, _project(tokens, self.text_pooling, self.text_proj))

    def image_tokens(self, images: Tensor, *mask: Tensor) -> Tokens:
        """Tokens of pixels, optionally with a patch mask and a mask token."""
        return encode(self.image_encoder, self.token_type, 'image', images, *mask)

    def text_tokens(self, input_ids: Tensor, attention_mask: Tensor) -> Tokens:
        """Tokens of word pieces."""
        return encode(self.text_encoder, self.token_type, 'text', input_ids, attention_mask)

    def relate(self, image: Tokens, text: Tokens) -> Relation | None:
        """What the position relates words and patches by, row by row."""
        return self.position.relate(image, text)

    def fuse(self, image: Tokens, text: Tokens, pairs: Tensor | None = None, **need) -> Fused:
        """See :meth:`xmodal.models.fusion.FusionEncoder.forward`."""
        return self.fusion(image, text, self.position, pairs, **need)

    def fuse_images(self, images: list[Tokens], text: Tokens, **need) -> list[Fused]:
        """See :meth:`xmodal.models.fusion.FusionEncoder.fuse_images`."""
        return self.fusion.fuse_images(images, text, self.position, **need)


def _project(tokens: Tokens, pooling: nn.Module | None, projection: nn.Linear) -> Tensor:
    """The normalised embedding of a modality, (B, d)."""
    embeddings, mask = tokens.embeddings, tokens.attention_mask
    with torch.autocast(embeddings.device.type, enabled=False):
        if pooling is None:
            pooled = embeddings[:, 0].float()
        else:
            pooled = pooling(embeddings[:, 1:].float(), None if mask is None else mask[:, 1:])
        return normalize(projection(pooled), dim=-1)
