"""Cross-entropy with labels and a momentum teacher's soft targets."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def distilled_cross_entropy(
    logits: Tensor,
    labels: Tensor,
    teacher_logits: Tensor | None,
    weight: float,
    reduction: str = 'mean',
) -> Tensor:
    """(1 − α) · cross-entropy with labels + α · cross-entropy with the teacher (ALBEF, Sec. 3.3).

    Args:
        logits: (B, C).
        labels: (B,) int64.
        teacher_logits: the momentum teacher's, (B, C), or None.
        weight: α.
        reduction: 'mean', or 'none' for the loss of each row, (B,).
    """
    logits = logits.float()
    loss = cross_entropy(logits, labels, reduction=reduction)
    if teacher_logits is None:
        return loss
    soft_targets = teacher_logits.float().softmax(1)
    return torch.lerp(loss, cross_entropy(logits, soft_targets, reduction=reduction), weight)
