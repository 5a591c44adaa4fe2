"""Masked language modelling."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, linear

from xmodal.registry import MODELS


class MaskedText(NamedTuple):
    """A text with words hidden.

    Attributes:
        input_ids: (B, N), some words replaced.
        chosen: words to predict, (B, N) bool.
    """

    input_ids: Tensor
    chosen: Tensor


@MODELS.register_module()
class MLMHead(nn.Module):
    """Predicts hidden words from the fused words; logits at hidden places only.

    15 % of the words are chosen: 80 % of them become [MASK], 10 % a random word, 10 % stay, as in
    BERT. Special tokens and padding are never chosen. The decoder is tied to the word embeddings,
    which the caller hands over.

    Args:
        embed_dims: D.
        vocab_size: number of words.
        mask_probability: share of words chosen.
    """

    def __init__(self, embed_dims: int, vocab_size: int, mask_probability: float = 0.15) -> None:
        super().__init__()
        self.mask_probability, self.vocab_size = mask_probability, vocab_size
        self.transform = nn.Linear(embed_dims, embed_dims)
        self.norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def mask(self, input_ids: Tensor, special_ids: Tensor, mask_id: int) -> MaskedText:
        """Hides words of (B, N) ``input_ids``; ``special_ids`` are never hidden."""
        candidate = ~torch.isin(input_ids, special_ids)
        chosen = candidate & (torch.rand_like(input_ids, dtype=torch.float) < self.mask_probability)
        fate = torch.rand_like(input_ids, dtype=torch.float)
        random_words = torch.randint_like(input_ids, self.vocab_size)
        hidden = torch.where(chosen & (fate < 0.8), mask_id, input_ids)
        hidden = torch.where(chosen & (fate >= 0.9), random_words, hidden)
        return MaskedText(hidden, chosen)

    def forward(self, words: Tensor, word_embeddings: Tensor) -> Tensor:
        """Fused words (K, D) to logits (K, vocabulary)."""
        return linear(self.norm(gelu(self.transform(words))), word_embeddings, self.bias)

    def loss(
        self, logits: Tensor, targets: Tensor, teacher_logits: Tensor | None, weight: float
    ) -> dict[str, Tensor]:
        """Cross-entropy over the K chosen words; 0, with gradient 0, where there are none.

        Args:
            logits: (K, vocabulary).
            targets: the words, (K,) int64.
            teacher_logits: the momentum model's, (K, vocabulary), or None.
            weight: α, the share of the teacher's soft targets.
        """
        if not len(targets):
            return {'loss_mlm': logits.sum() * 0}
        logits = logits.float()
        loss = cross_entropy(logits, targets)
        if teacher_logits is not None:
            soft_targets = teacher_logits.float().softmax(1)
            loss = torch.lerp(loss, cross_entropy(logits, soft_targets), weight)
        return {'loss_mlm': loss}
