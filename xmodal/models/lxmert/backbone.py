"""The backbone of LXMERT: three encoders over objects and words."""

from torch import Tensor, nn

from xmodal.errors import ConfigError
from xmodal.models.base import CrossModalBackbone, encode
from xmodal.models.layers import init_linear
from xmodal.structures import Fused, ImageTextBatch, Regions, Tokens


class LxmertBackbone(CrossModalBackbone):
    """Object relationship encoder, language encoder and cross-modality encoder (LXMERT, Sec. 2).

    Args:
        image_encoder: config of an encoder of regions, without [CLS].
        text_encoder: config of a text encoder.
        fusion: config of the cross-modality encoder.
        position: config of the position plug-in; it gets the cross-modality encoder's depth, width
            and heads.
        token_type: config of a :class:`TokenTypeEmbedding`, without its width; None for none.

    Raises:
        ValueError: when the encoders differ in width, or the image encoder has a [CLS].
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
        if self.image_encoder.has_cls:
            raise ConfigError(
                'the objects of LXMERT have boxes, and no [CLS] before them, found backbone.'
                f"image_encoder.type='{type(self.image_encoder).__name__}': take ObjectEncoder, "
                'for grid features, too'
            )
        self.embed_dims = self.fusion.embed_dims
        self.pooler = nn.Linear(self.embed_dims, self.embed_dims)
        init_linear(self.pooler, self.embed_dims)

    def encode_image(self, regions: Regions) -> Tokens:
        """Regions to tokens (B, R, D), without [CLS]."""
        return encode(self.image_encoder, self.token_type, 'image', regions)

    def encode_text(self, input_ids: Tensor, attention_mask: Tensor) -> Tokens:
        """(B, 1 + N) word pieces to tokens (B, 1 + N, D)."""
        return encode(self.text_encoder, self.token_type, 'text', input_ids, attention_mask)

    def fuse(self, image: Tokens, text: Tokens, **need) -> Fused:
        """See :meth:`xmodal.models.fusion.CrossModalityEncoder.forward`."""
        return self.fusion(image, text, self.position, **need)

    def fuse_batch(self, batch: ImageTextBatch, **need) -> Fused:
        """Encodes and fuses regions and texts row by row.

        Raises:
            ValueError: when there is not one image for each text.
        """
        num_images, num_texts = len(batch.images.features), len(batch.input_ids)
        if num_images != num_texts:
            raise ValueError(
                f'{num_images} images for {num_texts} texts, expected one for each: models of '
                'several images are LxmertNLVR'
            )
        image = self.encode_image(batch.images)
        text = self.encode_text(batch.input_ids, batch.attention_mask)
        return self.fuse(image, text, **need)

    def pool(self, fused: Fused) -> Tensor:
        """The cross-modality output, (B, D): tanh of a linear layer on the fused [CLS]."""
        return self.pooler(fused.text_tokens[:, 0]).tanh()
