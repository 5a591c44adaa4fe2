"""Masked language modelling."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu
from transformers import BertForMaskedLM

from xmodal.models.fusion import FusionRequest, fuse_requests
from xmodal.models.heads.pretrain_head import PretrainHead
from xmodal.models.heads.shares import require_share
from xmodal.models.heads.words import word_ids
from xmodal.models.layers.bert import log_loaded, read_pretrained, require_sizes
from xmodal.models.losses import distilled_cross_entropy
from xmodal.products import product
from xmodal.registry import MODELS
from xmodal.structures import Fused, LxmertStep, PretrainStep, Shown


class MaskedText(NamedTuple):
    """A text with words masked.

    Attributes:
        input_ids: (B, N), some words replaced.
        targets: words to predict, (B, N) bool.
    """

    input_ids: Tensor
    targets: Tensor


@MODELS.register_module()
class MLMHead(PretrainHead):
    """Predicts masked words from the fused words and the whole image; logits of these words alone.

    15 % of the words are targets: 80 % of them become [MASK], 10 % a random word, 10 % stay, as in
    BERT. Special tokens and padding are never targets. The decoder is tied to the word embeddings.

    Args:
        embed_dims: D.
        vocab_size: number of words.
        mask_probability: share of words that are targets.
        pretrained: a BERT whose prediction head is the start, a hub name or a directory with
            weights. They are read when training starts (``init_weights``).
        focus: words that only the image can tell, such as 'left' and 'right'. Each text that has
            some of them has one of these as a target, at random, beside the other targets: with
            15 % most texts have none. Bitton et al., "Data Efficient Masked Language Modeling for
            Vision and Language" (2021), choose targets by kinds of words.

    Raises:
        ValueError: when ``mask_probability`` is no share.
    """

    order = 3
    has_teacher = True

    def __init__(
        self,
        embed_dims: int,
        vocab_size: int,
        mask_probability: float = 0.15,
        pretrained: str | None = None,
        focus: Sequence[str] = (),
    ) -> None:
        super().__init__()
        if mask_probability or not focus:  # without chance the words in focus alone
            require_share('heads.mlm.mask_probability', mask_probability)
        self.focus = tuple(focus)
        self.register_buffer('focus_ids', torch.zeros(0, dtype=torch.long), persistent=False)
        self.mask_probability, self.vocab_size = mask_probability, vocab_size
        self.pretrained = pretrained
        self.transform = nn.Linear(embed_dims, embed_dims)
        self.norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def check(self, model: nn.Module) -> None:
        """Refuses a tokenizer without [MASK], word vectors that do not fit, and unknown words."""
        if getattr(model.data_preprocessor, 'mask_id', None) is None:
            raise ValueError(
                'the tokenizer has no [MASK], which masked language modelling puts in place of '
                'words: set heads.mlm=None, or take a BERT as text encoder'
            )
        encoder, fused = model.backbone.text_encoder, self.transform.out_features
        if not hasattr(encoder, 'word_embeddings'):
            raise ValueError(
                'heads.mlm compares fused words with the word vectors of the text encoder, and '
                f'{type(encoder).__name__} has no word_embeddings (vocab_size, width): set '
                'heads.mlm=None, or give it some'
            )
        known, words = encoder.word_embeddings.shape
        if known != self.vocab_size:
            raise ValueError(
                f'backbone.text_encoder: {type(encoder).__name__} has vocab_size={self.vocab_size} '
                f'and word_embeddings of {known} words, expected one number'
            )
        if fused != words:
            raise ValueError(
                f'heads.mlm compares fused words, {fused} wide (fusion.embed_dims), with the word '
                f'vectors of backbone.text_encoder, {words} wide: set heads.mlm=None, or give both '
                'one width, without backbone.text_adapter'
            )
        ids = word_ids(model, self.focus, 'heads.mlm.focus')
        self.focus_ids = torch.tensor(ids, dtype=torch.long, device=self.focus_ids.device)

    @torch.no_grad()
    def init_weights(self) -> None:
        """Loads BERT's prediction head, if one is asked for; its decoder is the word embeddings.

        Raises:
            FileNotFoundError: when the weights can be neither read nor downloaded.
            ValueError: when the BERT has other sizes or no prediction head.
        """
        if self.pretrained is None:
            return
        key = 'heads.mlm.pretrained'
        bert = read_pretrained(BertForMaskedLM, self.pretrained, key)
        sizes = {'hidden_size': self.transform.in_features, 'vocab_size': self.vocab_size}
        require_sizes(bert.config, sizes, key, self.pretrained)
        predictions = bert.cls.predictions
        self.transform.load_state_dict(predictions.transform.dense.state_dict())
        self.norm.load_state_dict(predictions.transform.LayerNorm.state_dict())
        self.bias.copy_(predictions.bias)
        log_loaded(key, self.pretrained, '5 tensors (transform, norm, bias)')

    def forward(self, words: Tensor, word_embeddings: Tensor) -> Tensor:
        """Fused words (K, D) to logits (K, vocabulary)."""
        return product(self.norm(gelu(self.transform(words))), word_embeddings, self.bias)

    def request_fusion(self, model: nn.Module, step: PretrainStep) -> FusionRequest:
        """Every image with its text, of which words are masked."""
        masked = self.mask_words(step.batch.input_ids, model.data_preprocessor)
        text = model.backbone.text_tokens(masked.input_ids, step.batch.attention_mask)
        # The targets of each text, then others where another text has more.
        longest = max(1, int(masked.targets.sum(1).max()))
        first = masked.targets.int().argsort(dim=1, descending=True, stable=True)[:, :longest]
        rows = torch.arange(len(first), device=first.device)
        return FusionRequest(step.image.tokens, text, torch.stack([rows, rows], 1), first, masked)

    def fused_loss(
        self, model: nn.Module, step: PretrainStep, request: FusionRequest, fused: Fused
    ) -> dict[str, Tensor]:
        """``loss_mlm``, with the momentum teacher's soft targets by their weight α."""
        masked, teacher_logits = request.drawn, None
        if step.distillation_weight:
            teacher, mask = model.teacher.module['backbone'], step.batch.attention_mask
            with torch.no_grad():
                of_teacher = request._replace(
                    image=step.teacher_image.tokens,
                    text=teacher.text_tokens(masked.input_ids, mask),
                )
                teacher_logits = model.teacher_of(self)._predict(
                    teacher, of_teacher, *fuse_requests(teacher, [of_teacher])
                )
        logits = self._predict(model.backbone, request, fused)
        targets = step.batch.input_ids[masked.targets]
        return self.word_loss(logits, targets, teacher_logits, step.distillation_weight)

    def _predict(self, backbone: nn.Module, request: FusionRequest, fused: Fused) -> Tensor:
        """Logits of the targets, (K, vocabulary)."""
        words = fused.text_tokens[request.drawn.targets.gather(1, request.words)]
        return self(words, backbone.text_encoder.word_embeddings)

    def mask_words(self, input_ids: Tensor, preprocessor: nn.Module) -> MaskedText:
        """Masks words of (B, N) ``input_ids``, none of the tokenizer's special ones."""
        candidates = ~torch.isin(input_ids, preprocessor.special_ids)
        targets = candidates & (
            torch.rand_like(input_ids, dtype=torch.float) < self.mask_probability
        )
        if len(self.focus_ids):
            targets = targets | self._one_in_focus(input_ids)
        action = torch.rand_like(input_ids, dtype=torch.float)
        random_words = torch.randint_like(input_ids, self.vocab_size)
        masked = torch.where(targets & (action < 0.8), preprocessor.mask_id, input_ids)
        masked = torch.where(targets & (action >= 0.9), random_words, masked)
        return MaskedText(masked, targets)

    def _one_in_focus(self, input_ids: Tensor) -> Tensor:
        """One of the words in focus of each text that has some, (B, N) bool."""
        found = torch.isin(input_ids, self.focus_ids)
        random = torch.rand_like(input_ids, dtype=torch.float).masked_fill(~found, -1)
        first = torch.zeros_like(found).scatter(1, random.argmax(1, keepdim=True), True)
        return found & first

    @staticmethod
    def word_loss(
        logits: Tensor, targets: Tensor, teacher_logits: Tensor | None = None, weight: float = 0.0
    ) -> dict[str, Tensor]:
        """Cross-entropy over the K targets; 0, with gradient 0, where there are none.

        Args:
            logits: (K, vocabulary).
            targets: the words, (K,) int64.
            teacher_logits: the momentum teacher's, (K, vocabulary), or None.
            weight: α, the share of the teacher's soft targets.
        """
        if not len(targets):
            return {'loss_mlm': logits.sum() * 0}
        return {'loss_mlm': distilled_cross_entropy(logits, targets, teacher_logits, weight)}


@MODELS.register_module()
class LxmertMLMHead(MLMHead):
    """Masked cross-modality language modelling in LXMERT's one pass (Sec. 3.1)."""

    reads_image_tokens = False

    def request_fusion(self, model: nn.Module, step: LxmertStep) -> None:
        """Nothing: the one pass has fused the masked texts."""

    def mask(self, model: nn.Module, shown: Shown) -> Shown:
        """Masks words of the texts that are shown."""
        masked = self.mask_words(shown.input_ids, model.data_preprocessor)
        batch = shown.batch._replace(input_ids=masked.input_ids)
        return shown._replace(batch=batch, masked_words=masked.targets)

    def loss(self, model: nn.Module, step: LxmertStep) -> dict[str, Tensor]:
        """``loss_mlm``."""
        targets = step.shown.masked_words
        words = step.fused.text_tokens[targets]
        logits = self(words, model.backbone.text_encoder.word_embeddings)
        return self.word_loss(logits, step.shown.input_ids[targets])
