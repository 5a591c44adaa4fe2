"""Sampling of negatives within a batch."""

import torch
from torch import Tensor


def sample_negatives(logits: Tensor, positives: Tensor) -> tuple[Tensor, Tensor]:
    """Samples one negative for each row, hard ones more often.

    Args:
        logits: (B, C); a candidate is sampled with probability softmax(logits).
        positives: (B, C) bool, candidates that are no negatives.

    Returns:
        The sampled columns (B,) int64, and (B,) bool: False where a row has no negative (its column
        is meaningless).
    """
    has_negative = ~positives.all(1)
    # A batch that is not finite ends in a loss that is not, and there its step is skipped.
    logits = logits.float().nan_to_num()
    # Masking before the softmax keeps a sum of 1 however peaked the logits are.
    logits = logits.masked_fill(positives & has_negative[:, None], -torch.inf)
    return torch.multinomial(logits.softmax(1), 1).squeeze(1), has_negative
