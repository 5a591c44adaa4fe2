"""EMKUM: two pretrained encoders, and one block that both modalities pass through separately."""

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn.functional import normalize

from xmodal.models.backbones.encoder import build_encoder
from xmodal.models.backbones.frozen import FrozenTeacher
from xmodal.models.base import CrossModalModel, build_token_type, check_vocabulary, encode
from xmodal.models.emkum.shared_block import SharedBlock
from xmodal.models.heads import DistillationHead
from xmodal.models.losses import CLIPLoss
from xmodal.registry import MODELS
from xmodal.structures import DataSample, Encoded, ImageTextBatch, Regions, Tokens


class BlockOutput(NamedTuple):
    """One modality after the shared block.

    Attributes:
        tokens: (B, L, D); [CLS] alone where nothing else passes the block, L = 1.
        hidden: [CLS] in the feed-forward block, (B, F).
    """

    tokens: Tokens
    hidden: Tensor

    @property
    def cls_token(self) -> Tensor:
        """[CLS] after the block, (B, D)."""
        return self.tokens.embeddings[:, 0]


@MODELS.register_module()
class EmkumModel(CrossModalModel):
    """Extracting Multimodal Knowledge from Unimodal Models.

    encode → type → shared block → heads. Each modality passes the block separately. A contrastive
    loss on [CLS] aligns them at two levels, inside the block's feed-forward part and after the
    block; a regression of a frozen teacher's image embedding is added. The normalised [CLS] after
    the block is the embedding of an image or a text.

    Args:
        data_preprocessor: config of the preprocessor.
        image_encoder: config of an image encoder with a [CLS].
        text_encoder: config of a text encoder.
        shared_block: arguments of :class:`SharedBlock`, without its width.
        token_type: config of a :class:`TokenTypeEmbedding`, without its width; None for none.
        temperature: initial temperature of the contrastive loss of both levels.
        teacher: config of a teacher, ``TimmTeacher`` or ``EncoderTeacher``; None for no
            distillation.

    Raises:
        ValueError: when the encoders differ in width, that of images has no [CLS], or the tokenizer
            has more words than the text encoder.
    """

    def __init__(
        self,
        data_preprocessor: dict,
        image_encoder: dict,
        text_encoder: dict,
        shared_block: dict,
        token_type: dict | None = None,
        temperature: float = 0.07,
        teacher: dict | None = None,
    ) -> None:
        super().__init__(data_preprocessor)
        self.image_encoder = build_encoder(image_encoder, 'model.image_encoder')
        self.text_encoder = build_encoder(text_encoder, 'model.text_encoder')
        check_vocabulary(self.data_preprocessor, self.text_encoder)
        widths = self.image_encoder.embed_dims, self.text_encoder.embed_dims
        if widths[0] != widths[1]:
            raise ValueError(
                f'image_encoder is {widths[0]} wide and text_encoder {widths[1]}: both pass one '
                'block and must have one width'
            )
        for encoder in (self.image_encoder, self.text_encoder):
            if not encoder.has_cls:
                raise ValueError(
                    f'{type(encoder).__name__} has no [CLS], which EMKUM contrasts: for grid '
                    'features take GridFeatureEncoder, for texts a BERT'
                )
        if teacher is not None and hasattr(self.image_encoder, 'feature_dims'):
            raise ValueError(
                f'the teacher sees pixels, and {type(self.image_encoder).__name__} features that '
                'were computed before: set teacher=None'
            )
        self.shared_block = MODELS.build(
            {'type': SharedBlock, 'embed_dims': widths[0], **shared_block}
        )
        encoders = self.image_encoder, self.text_encoder
        self.token_type = build_token_type(token_type, widths[0], *encoders)
        self.heads = nn.ModuleDict(
            {'hidden': CLIPLoss(temperature), 'output': CLIPLoss(temperature)}
        )
        self.teacher = None
        if teacher is not None:
            self.teacher = FrozenTeacher(teacher)
            self.heads['distillation'] = DistillationHead(widths[0], self.teacher.embed_dims)

    def init_weights(self) -> None:
        """Loads the pretrained weights of encoders and teacher, where the config names some."""
        for part in (self.image_encoder, self.text_encoder, self.teacher):
            if part is not None:
                part.init_weights()

    def tensor(
        self, batch: ImageTextBatch, samples: list[DataSample] | None = None
    ) -> tuple[Encoded, Encoded]:
        """Encoded images and texts."""
        return (
            self.encode_image(batch.images),
            self.encode_text(batch.input_ids, batch.attention_mask),
        )

    def encode_image(self, images: Tensor | Regions) -> Encoded:
        """Pixels (B, 3, H, W), or grid features, to tokens (B, 1 + M, D), embeddings (B, D)."""
        return _encoded(self._pass_block('image', images))

    def encode_text(self, input_ids: Tensor, attention_mask: Tensor) -> Encoded:
        """(B, N) word pieces to tokens (B, N, D) and embeddings (B, D)."""
        return _encoded(self._pass_block('text', input_ids, attention_mask))

    def loss(
        self, batch: ImageTextBatch, samples: list[DataSample] | None = None
    ) -> dict[str, Tensor]:
        """Mean of the contrastive losses of both levels, plus the distillation's.

        ``batch.images`` has a row an image, or two, which are two crops (``TwoViews``): the
        student's and then the teacher's.
        """
        student_images = teacher_images = images = batch.images
        if isinstance(images, Tensor) and len(images) == 2 * len(batch.image_ids):
            student_images, teacher_images = images.unflatten(0, (-1, 2)).unbind(1)
        image = self._pass_block('image', student_images, only_cls=True)
        text = self._pass_block('text', batch.input_ids, batch.attention_mask, only_cls=True)
        positives = batch.identities.positives(batch.identities.gather())
        values = {}
        for level, embeddings in (
            ('hidden', (image.hidden, text.hidden)),
            ('output', (image.cls_token, text.cls_token)),
        ):
            head = self.heads[level]
            loss = head(*(_normalized(x) for x in embeddings), positives)
            values |= {
                f'loss_{level}': loss / 2,
                f'temperature_{level}': head.temperature().detach(),
            }
        if self.teacher is not None:
            head = self.heads['distillation']
            values |= head.loss(image.cls_token, text.cls_token, self.teacher(teacher_images))
        return values

    def _pass_block(
        self, modality: str, *inputs: Tensor | Regions, only_cls: bool = False
    ) -> BlockOutput:
        """One modality through its encoder, its type and the shared block."""
        encoder = self.image_encoder if modality == 'image' else self.text_encoder
        tokens = encode(encoder, self.token_type, modality, *inputs)
        return BlockOutput(*self.shared_block(tokens, only_cls))


def _encoded(output: BlockOutput) -> Encoded:
    return Encoded(output.tokens, _normalized(output.cls_token))


def _normalized(x: Tensor) -> Tensor:
    return normalize(x.float(), dim=-1)
