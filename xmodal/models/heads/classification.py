"""Classification of an image, or several, with a text."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from xmodal.registry import MODELS


@MODELS.register_module()
class ClassificationHead(nn.Module):
    """Classes from the fused [CLS] of the text: linear, ReLU, linear (ALBEF, Sec. 4).

    Args:
        embed_dims: D.
        num_classes: C.
    """

    def __init__(self, embed_dims: int, num_classes: int) -> None:
        super().__init__()
        self.classifier = nn.Sequential(
            nn.Linear(embed_dims, embed_dims), nn.ReLU(), nn.Linear(embed_dims, num_classes)
        )

    def forward(self, text_tokens: Tensor) -> Tensor:
        """Fused words (B, 1 + N, D) to logits (B, C)."""
        return self.classifier(text_tokens[:, 0])

    def loss(
        self, logits: Tensor, labels: Tensor, teacher_logits: Tensor | None, weight: float
    ) -> dict[str, Tensor]:
        """Cross-entropy, and the share judged rightly.

        Args:
            logits: (B, C).
            labels: (B,) int64.
            teacher_logits: the momentum model's, (B, C), or None.
            weight: α; targets are (1 − α) · one-hot + α · the teacher's softmax.
        """
        logits = logits.float()
        loss = cross_entropy(logits, labels)
        if teacher_logits is not None:
            soft_targets = teacher_logits.float().softmax(1)
            loss = torch.lerp(loss, cross_entropy(logits, soft_targets), weight)
        accuracy = (logits.argmax(1) == labels).float().mean()
        return {'loss_classification': loss, 'accuracy': accuracy}
