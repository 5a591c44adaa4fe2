"""Classification of an image, or several, with a text."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from xmodal.registry import MODELS
from xmodal.structures import DataSample


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

    def predict(self, logits: Tensor, samples: list[DataSample]) -> list[DataSample]:
        """Sets ``probabilities`` (C,) and ``predicted``, the class, of each sample.

        Raises:
            ValueError: when a logit is not finite, of which any class would come out.
        """
        if not logits.isfinite().all():
            raise ValueError('logits are not finite: the weights of the model hold NaN or inf')
        for sample, probabilities in zip(samples, logits.float().cpu().softmax(1), strict=True):
            sample.probabilities = probabilities
            sample.predicted = int(probabilities.argmax())
        return samples


@MODELS.register_module()
class PooledClassificationHead(ClassificationHead):
    """Classes from the cross-modality outputs of K images with a text (LXMERT, Sec. 4.2).

    NLVR2's two images are K = 2: linear, GELU, layer norm, linear. Two logits under a softmax are
    the sigmoid that the paper writes, of their difference.

    Args:
        embed_dims: D.
        num_classes: C.
        images: K.
    """

    def __init__(self, embed_dims: int, num_classes: int = 2, images: int = 2) -> None:
        super().__init__(embed_dims, num_classes)
        self.images = images
        self.classifier = nn.Sequential(
            nn.Linear(images * embed_dims, 2 * embed_dims),
            nn.GELU(),
            nn.LayerNorm(2 * embed_dims, eps=1e-12),
            nn.Linear(2 * embed_dims, num_classes),
        )

    def forward(self, pooled: Tensor) -> Tensor:
        """Cross-modality outputs (B · K, D), a text's together, to logits (B, C)."""
        return self.classifier(pooled.unflatten(0, (-1, self.images)).flatten(1))
