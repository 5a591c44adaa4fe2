"""The contrastive loss, with several positives and soft targets."""

import torch
from torch import Tensor


def contrastive_loss(
    logits: Tensor,
    positives: Tensor,
    teacher_logits: Tensor | None = None,
    distillation_weight: float = 0.0,
    is_empty: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of each query over its candidates; positives share the target's mass.

    Args:
        logits: of B queries with K candidates, (B, K).
        positives: candidates that match a query, at least one each, (B, K) bool.
        teacher_logits: the momentum teacher's, (B, K), or None.
        distillation_weight: α; targets are (1 − α) · the positives' + α · the teacher's softmax.
        is_empty: candidates that do not count, (K,) bool; None where all do.

    Returns:
        (B,).
    """
    targets = positives / positives.sum(1, keepdim=True)
    if is_empty is not None:
        logits = logits.masked_fill(is_empty, -torch.inf)
    if teacher_logits is not None and distillation_weight:
        with torch.no_grad():
            if is_empty is not None:
                teacher_logits = teacher_logits.masked_fill(is_empty, -torch.inf)
            targets = torch.lerp(targets, teacher_logits.softmax(1), distillation_weight)
    log_probabilities = logits.log_softmax(1)
    if is_empty is not None:
        # An empty entry has probability 0 in the target, and 0 · −inf would be NaN.
        log_probabilities = log_probabilities.masked_fill(is_empty, 0)
    return -(targets * log_probabilities).sum(1)
