"""Classification of an image, or several, with a text."""

from torch import Tensor, nn

from xmodal.models.losses import distilled_cross_entropy
from xmodal.registry import MODELS


@MODELS.register_module()
class ClassificationHead(nn.Module):
    """Classes from the fused [CLS] of the text: linear, ReLU, linear (ALBEF, Sec. 5).

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
        self,
        logits: Tensor,
        labels: Tensor,
        teacher_logits: Tensor | None = None,
        weight: float = 0.0,
    ) -> dict[str, Tensor]:
        """``loss_classification``, cross-entropy, and the ``accuracy``.

        Args:
            logits: (B, C).
            labels: (B,) int64.
            teacher_logits: the momentum teacher's, (B, C), or None.
            weight: α, the share of the teacher's soft targets.
        """
        return {
            'loss_classification': distilled_cross_entropy(logits, labels, teacher_logits, weight),
            'accuracy': (logits.argmax(1) == labels).float().mean(),
        }


@MODELS.register_module()
class PooledClassificationHead(ClassificationHead):
    """Classes from the cross-modality outputs of K images with a text (LXMERT, Sec. 4.2).

    Linear, GELU, layer norm, linear; K = 2 for NLVR2. The softmax of two logits is the sigmoid of
    their difference, which the paper writes.

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
