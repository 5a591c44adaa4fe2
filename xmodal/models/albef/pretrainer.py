"""Pre-training with momentum distillation: ACE-RPE, and ALBEF as a special case."""

import torch
from torch import Tensor, nn

from xmodal.models.albef.backbone import AlbefBackbone
from xmodal.models.base.momentum_model import MomentumModel
from xmodal.models.base.queue import Keys, MomentumQueue
from xmodal.models.heads.own import check_own_heads, own_losses
from xmodal.models.necks.position import Relation
from xmodal.registry import MODELS
from xmodal.structures import DataSample, Encoded, Fused, ImageTextBatch, Tokens

HEADS = ('itc', 'ace', 'itm', 'mlm', 'mim')


@MODELS.register_module()
class AlbefPretrainer(MomentumModel):
    """Image and text encoder, position, fusion encoder, and any of five heads, or one's own.

    encode → relate → fuse → heads. A head that is left out of ``heads`` is neither built nor paid
    for. A momentum teacher of the backbone gives the contrastive keys and the soft targets.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.
        heads: configs by name: ``itc``, ``ace``, ``itm``, ``mlm``, ``mim``; None leaves out one
            that an inherited config has. A head of any other name is asked for its
            ``step_loss(model, image, text, batch, samples)``, encoded images and texts.
        queue_length: K − 1 or so, the length of the dictionaries O_x and O_y.
        momentum: m of the teacher; None for no teacher: the online vectors are the keys. Either way no
            gradient reaches a key; with it, random encoders take four times as long to leave
            the point where all vectors are alike.

    Attributes:
        active_heads: names of the heads that are trained; a hook may let some begin later.
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
        heads = {name: head for name, head in heads.items() if head is not None}
        check_own_heads(heads, HEADS)
        if 'itm' in heads and not {'itc', 'ace'} & set(heads):
            raise ValueError(
                "model.heads has 'itm', whose hard negatives are drawn by a contrastive head: add "
                "'itc' or 'ace'"
            )
        self.heads = nn.ModuleDict()
        for name in dict.fromkeys([*HEADS, *heads]):
            if name in heads:
                self.heads[name] = MODELS.build({**heads[name], **self._sizes(name)})
        self.active_heads = frozenset(self.heads)
        self.make_teacher(momentum)
        self.queue = MomentumQueue(queue_length, self.backbone.image_proj.out_features)
        tokenizer = self.data_preprocessor.tokenizer
        self.mask_id = tokenizer.mask_token_id
        special_ids = torch.tensor(tokenizer.all_special_ids)
        self.register_buffer('special_ids', special_ids, persistent=False)

    @property
    def contrastive_head(self) -> nn.Module:
        """The head by whose similarity negatives are drawn and candidates are ranked."""
        return self.heads['itc'] if 'itc' in self.heads else self.heads['ace']

    def momentum_modules(self) -> dict[str, str]:
        """The backbone, and the head whose targets are distilled."""
        return super().momentum_modules() | ({'mlm': 'heads.mlm'} if 'mlm' in self.heads else {})

    def tensor(
        self, batch: ImageTextBatch, samples: list[DataSample] | None = None
    ) -> tuple[Encoded, Encoded]:
        """Encoded images and texts."""
        return (
            self.encode_image(batch.images),
            self.encode_text(batch.input_ids, batch.attention_mask),
        )

    def encode_image(self, images: Tensor) -> Encoded:
        """(B, 3, H, W) pixels to tokens and vectors."""
        return self.backbone.encode_image(images)

    def encode_text(self, input_ids: Tensor, attention_mask: Tensor) -> Encoded:
        """(B, N) word pieces to tokens and vectors."""
        return self.backbone.encode_text(input_ids, attention_mask)

    def relate(self, image: Tokens, text: Tokens) -> Relation | None:
        """What the position plug-in finds between words and patches, row by row."""
        return self.backbone.relate(image, text)

    def fuse(self, image: Tokens, text: Tokens, need_attentions: bool = False) -> Fused:
        """Fuses images and texts row by row."""
        return self.backbone.fuse(image, text, need_attentions=need_attentions)

    def match(self, image: Tokens, text: Tokens, pairs: Tensor) -> Tensor:
        """How well images and texts match.

        Args:
            image: distinct images.
            text: distinct texts.
            pairs: rows of image and text to judge, (P, 2) int64.

        Returns:
            Logit of 'yes' minus logit of 'no', (P,).
        """
        fused = self.backbone.fuse(image, text, pairs, need_image=False)
        logits = self.heads['itm'](fused.text_tokens).float()
        return logits[:, 1] - logits[:, 0]

    def loss(
        self, batch: ImageTextBatch, samples: list[DataSample] | None = None
    ) -> dict[str, Tensor]:
        """The losses of all heads, by name; entries without 'loss' in the name are only logged."""
        image, text = self.tensor(batch)
        teacher_image, teacher_text = self._teach(batch) if self.teacher else (image, text)
        own_keys = Keys(
            teacher_image.embedding.detach(),
            teacher_text.embedding.detach(),
            batch.image_ids,
            batch.text_ids,
        )
        gathered = own_keys.gather()

        logs = {}
        if self.active_heads & {'itc', 'ace'}:
            keys = gathered.join(self.queue.keys())
            for name in ('itc', 'ace'):
                if name in self.active_heads:
                    logs |= self.heads[name].loss(
                        image, text, keys, batch, own_keys, self.distillation_weight
                    )
            self.queue.write(gathered)
        if 'itm' in self.active_heads:
            logs |= self._match_loss(image, text, own_keys, batch)
        if 'mlm' in self.active_heads:
            logs |= self._word_loss(image, teacher_image, batch)
        if 'mim' in self.active_heads:
            logs |= self._pixel_loss(text, batch)
        return logs | own_losses(self, HEADS, image, text, batch, samples)

    @torch.no_grad()
    def _teach(self, batch: ImageTextBatch) -> tuple[Encoded, Encoded]:
        """The momentum teacher's images and texts."""
        backbone = self.teacher.module['backbone']
        return (
            backbone.encode_image(batch.images),
            backbone.encode_text(batch.input_ids, batch.attention_mask),
        )

    def _match_loss(
        self, image: Encoded, text: Encoded, keys: Keys, batch: ImageTextBatch
    ) -> dict[str, Tensor]:
        """ITM: negatives are drawn from the batch by the similarity that is trained."""
        head = self.heads['itm']
        with torch.no_grad():
            similarity = image.embedding.float() @ keys.text_embeddings.float().T
            same = keys.same(batch.image_ids, batch.text_ids)
            pairs, labels, weights = head.pairs(self.contrastive_head.scale(similarity), same)
        fused = self.backbone.fuse(image.tokens, text.tokens, pairs, need_image=False)
        logs = head.loss(head(fused.text_tokens), labels, weights)
        if hasattr(self.backbone.position, 'statistics'):
            words = text.tokens.select(pairs[:, 1])
            shares = self.backbone.position.statistics(fused.relation, words)
            for name, share in shares.items():
                logs[f'{name}_matched'] = share[: len(same)].mean()
                logs[f'{name}_mismatched'] = share[len(same) :].mean()
        return logs

    def _word_loss(
        self, image: Encoded, teacher_image: Encoded, batch: ImageTextBatch
    ) -> dict[str, Tensor]:
        """MLM: hidden words from the rest and the whole image."""
        head = self.heads['mlm']
        masked = head.mask(batch.input_ids, self.special_ids, self.mask_id)

        def predict(backbone: AlbefBackbone, head: nn.Module, image: Encoded) -> Tensor:
            text = backbone.text_tokens(masked.input_ids, batch.attention_mask)
            fused = backbone.fuse(image.tokens, text, need_image=False)
            words = fused.text_tokens[masked.chosen]
            return head(words, backbone.text_encoder.word_embeddings)

        teacher_logits = None
        if self.teacher and self.distillation_weight:
            with torch.no_grad():
                teacher = self.teacher.module
                teacher_logits = predict(teacher['backbone'], teacher['mlm'], teacher_image)
        logits = predict(self.backbone, head, image)
        targets = batch.input_ids[masked.chosen]
        return head.loss(logits, targets, teacher_logits, self.distillation_weight)

    def _pixel_loss(self, text: Encoded, batch: ImageTextBatch) -> dict[str, Tensor]:
        """MIM: hidden patches from the rest and, after fusion, the text."""
        head = self.heads['mim']
        mask = head.mask(batch.images)
        image = self.backbone.image_tokens(batch.images, mask, head.mask_token)
        patches = image.embeddings
        if head.source == 'fusion':
            patches = self.backbone.fuse(image, text.tokens).image_tokens
        return head.loss(patches, batch.images, mask)

    def _sizes(self, name: str) -> dict[str, int]:
        """The arguments of a head that follow from the backbone."""
        embed_dims = self.backbone.fusion.embed_dims
        if name in ('itc', 'ace'):
            return {}
        if name == 'mlm':
            return dict(embed_dims=embed_dims, vocab_size=self.backbone.text_encoder.vocab_size)
        if name == 'mim':
            return dict(embed_dims=embed_dims, patch_size=self.backbone.image_encoder.patch_size)
        return dict(embed_dims=embed_dims)
