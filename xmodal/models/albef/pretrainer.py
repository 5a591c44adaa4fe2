"""Pre-training with momentum distillation: ACE-RPE, and ALBEF as a special case."""

import torch
from torch import Tensor

from xmodal.models.albef.model import AlbefModel
from xmodal.models.base import MomentumQueue
from xmodal.models.heads import ContrastiveHead, ITMHead, PretrainHeads
from xmodal.registry import MODELS
from xmodal.structures import (
    DataSample,
    Encoded,
    Fused,
    ImageTextBatch,
    Keys,
    PretrainStep,
    Relation,
    Tokens,
)


@MODELS.register_module()
class AlbefPretrainer(AlbefModel):
    """Image encoder, text encoder, position, fusion encoder, and any objectives.

    encode → relate → fuse → heads. The step encodes both modalities once, and each head computes
    its losses from it. A momentum teacher gives the contrastive keys and the soft targets.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.
        heads: configs of :class:`PretrainHead` by name; None leaves out one of an inherited config.
        queue_length: K, the length of the dictionaries O_x and O_y.
        momentum: m of the momentum teacher; None for no teacher: the online embeddings are the
            keys. No gradient reaches a key either way. With a teacher, random encoders take four
            times as long to leave the point where all embeddings are alike.

    Attributes:
        heads: the objectives; a hook may let some begin later.
    """

    def __init__(
        self,
        data_preprocessor: dict,
        backbone: dict,
        heads: dict[str, dict | None],
        queue_length: int = 65536,
        momentum: float | None = 0.995,
    ) -> None:
        super().__init__(data_preprocessor, backbone)
        self.heads = PretrainHeads(heads, self.backbone.sizes)
        for head in self.heads.values():
            head.check(self)
        self.make_teacher(momentum)
        self.queue = MomentumQueue(queue_length, self.backbone.proj_dims)

    @property
    def contrastive_head(self) -> ContrastiveHead | None:
        """The first head whose similarity ranks candidates and samples negatives."""
        return next((h for h in self.heads.values() if isinstance(h, ContrastiveHead)), None)

    @property
    def matching_head(self) -> ITMHead | None:
        """The head that judges whether an image and a text match."""
        return next((h for h in self.heads.values() if isinstance(h, ITMHead)), None)

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some, and makes the teacher equal."""
        self.heads.init_weights()
        super().init_weights()

    def momentum_modules(self) -> dict[str, str]:
        """The backbone, and the heads whose soft targets are distilled."""
        distilled = [name for name, head in self.heads.items() if head.has_teacher]
        return {**super().momentum_modules(), **{name: f'heads.{name}' for name in distilled}}

    def loss(
        self, batch: ImageTextBatch, samples: list[DataSample] | None = None
    ) -> dict[str, Tensor]:
        """Values of all active heads: those with 'loss' in the name are added up."""
        step, gathered = self.prepare_step(batch, samples)
        values = self.heads.loss(self, step)
        self.queue.write(gathered)
        return values

    def prepare_step(
        self, batch: ImageTextBatch, samples: list[DataSample] | None = None
    ) -> tuple[PretrainStep, Keys]:
        """What the heads share, and the keys of all ranks, which go to the queue."""
        need_tokens = any(head.reads_tokens for head in self.heads.active_heads())
        words = batch.input_ids, batch.attention_mask
        image = self.backbone.encode_image(batch.images, need_tokens)
        text = self.backbone.encode_text(*words, need_tokens)
        teacher_image, teacher_text = image, text
        if self.teacher:
            with torch.no_grad():
                teacher = self.teacher.module['backbone']
                teacher_image = teacher.encode_image(batch.images, need_tokens)
                teacher_text = teacher.encode_text(*words, need_tokens)
        batch_keys = Keys(
            teacher_image.embedding.detach(), teacher_text.embedding.detach(), *batch.identities
        )
        gathered = batch_keys.gather()
        step = PretrainStep(
            batch,
            samples,
            image,
            text,
            teacher_image,
            teacher_text,
            batch_keys,
            gathered.join(self.queue.keys()),
            self.distillation_weight,
        )
        return step, gathered

    def tensor(
        self, batch: ImageTextBatch, samples: list[DataSample] | None = None
    ) -> tuple[Encoded, Encoded]:
        """Encoded images and texts."""
        return (
            self.encode_image(batch.images),
            self.encode_text(batch.input_ids, batch.attention_mask),
        )

    def encode_image(self, images: Tensor) -> Encoded:
        """(B, 3, H, W) pixels to tokens and embeddings."""
        return self.backbone.encode_image(images)

    def encode_text(self, input_ids: Tensor, attention_mask: Tensor) -> Encoded:
        """(B, N) word pieces to tokens and embeddings."""
        return self.backbone.encode_text(input_ids, attention_mask)

    def relate(self, image: Tokens, text: Tokens) -> Relation | None:
        """What the position relates words and patches by, row by row."""
        return self.backbone.position.relate(image, text)

    def fuse(self, image: Tokens, text: Tokens) -> Fused:
        """Fuses images and texts row by row."""
        return self.backbone.fuse(image, text)

    def match(self, image: Tokens, text: Tokens, pairs: Tensor) -> Tensor:
        """How well images and texts match.

        Args:
            image: distinct images.
            text: distinct texts.
            pairs: rows of image and text, (P, 2) int64.

        Returns:
            Matching scores by the ITM head, (P,): see its ``score``.
        """
        return self.matching_head.matching_score(self.match_logits(image, text, pairs))

    def match_logits(self, image: Tokens, text: Tokens, pairs: Tensor) -> Tensor:
        """Logits of 'no' and 'yes' of pairs as in :meth:`match`, (P, 2) float32.

        Raises:
            ValueError: when the model has no ITM head.
        """
        self.require_matching_head()
        head = self.matching_head
        fused = self.backbone.fuse(image, text, pairs, need_image=False, words=head.words(pairs))
        return head(fused.text_tokens).float()
