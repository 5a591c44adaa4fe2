"""Image-text matching with hard negatives."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from xmodal.registry import MODELS


def sample_negatives(logits: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor]:
    """Draws one negative for each row, hard ones more often, for the whole batch at once.

    Args:
        logits: (B, C); a candidate is drawn with probability softmax(logits).
        forbidden: (B, C) bool, candidates that are no negatives.

    Returns:
        The drawn columns (B,) int64, and (B,) bool: False where every candidate was forbidden (the
        column drawn there means nothing).
    """
    possible = ~forbidden.all(1)
    # A batch that is not finite ends in a loss that is not, and there its step is skipped.
    logits = logits.float().nan_to_num()
    # Masking before the softmax keeps a sum of 1 however peaked the logits are.
    logits = logits.masked_fill(forbidden & possible[:, None], -torch.inf)
    drawn = torch.multinomial(logits.softmax(1), 1).squeeze(1)
    return drawn, possible


@MODELS.register_module()
class ITMHead(nn.Module):
    """Is this the image of this text? Two classes from the fused [CLS] of the text.

    Args:
        embed_dims: D.
        hardness: how hard negatives are: they are drawn with probability softmax(hardness · logits)
            of the contrastive logits; 1 is ALBEF's, 0 draws any. A fusion encoder that starts from
            random weights learns from hard negatives alone only after a long plateau.
    """

    def __init__(self, embed_dims: int, hardness: float = 1.0) -> None:
        super().__init__()
        self.hardness = hardness
        self.classifier = nn.Linear(embed_dims, 2)

    def forward(self, text_tokens: Tensor) -> Tensor:
        """Fused words (P, 1 + N, D) to logits of 'no' and 'yes', (P, 2)."""
        return self.classifier(text_tokens[:, 0])

    def pairs(self, logits: Tensor, same: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs to judge: B that match, B with another image, B with another text.

        Args:
            logits: similarity of the batch's images (rows) and texts, (B, B).
            same: (B, B) bool, pairs of the same image or the same text: never negatives.

        Returns:
            Rows of image and text (3B, 2), labels (3B,) int64, and weights (3B,), 0 for a negative
            that could not be drawn.
        """
        logits = self.hardness * logits
        own = torch.arange(len(logits), device=logits.device)
        other_text, has_text = sample_negatives(logits, same)
        other_image, has_image = sample_negatives(logits.T, same.T)
        pairs = torch.cat(
            [
                torch.stack([own, own], 1),
                torch.stack([other_image, own], 1),
                torch.stack([own, other_text], 1),
            ]
        )
        labels = (torch.arange(len(pairs), device=own.device) < len(own)).long()
        weights = torch.cat([torch.ones_like(has_text), has_image, has_text]).float()
        return pairs, labels, weights

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor) -> dict[str, Tensor]:
        """Cross-entropy over the pairs, (P, 2) logits; and the share judged rightly."""
        losses = cross_entropy(logits.float(), labels, reduction='none')
        correct = (logits.argmax(1) == labels).float()
        total = weights.sum()
        return {
            'loss_itm': (losses * weights).sum() / total,
            'itm_accuracy': (correct * weights).sum() / total,
        }
