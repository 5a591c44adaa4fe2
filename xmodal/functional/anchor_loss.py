"""The anchor loss (ACE-RPE, Eqs. 1 and 2)."""

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from xmodal.functional.precision import full_precision


@full_precision
def anchor_log_sum_exp(
    patches: Tensor, words: Tensor, scale: float, patch_mask: Tensor, word_mask: Tensor
) -> Tensor:
    """(1 / λ) log Σ_mn exp(λ f(x_m, y_n)) (Eq. 1), over real patches and words.

    Args:
        patches: without [CLS], (B, M, D).
        words: without [CLS], (B, N, D).
        scale: λ.
        patch_mask: True for real patches, (B, M) bool.
        word_mask: True for real words, (B, N) bool.

    Returns:
        (B,), 0 where there is no real patch or no real word.
    """
    exponent = scale * (normalize(patches, dim=-1) @ normalize(words, dim=-1).mT)
    return _masked_log_sum_exp(exponent, patch_mask[:, :, None] & word_mask[:, None]) / scale


@full_precision
def margin_contrast(
    positive: Tensor,
    negatives: Tensor,
    delta: float,
    scale: float,
    negative_mask: Tensor | None = None,
) -> Tensor:
    """H (Eq. 2): the hinge of the positive over a log-sum-exp of the negatives.

    Args:
        positive: f(x, y), (B,).
        negatives: f(x, z), (B, K).
        delta: δ, the margin.
        scale: λ.
        negative_mask: True where z is a negative, (B, K) bool; a row without negatives gives 0.

    Returns:
        (B,).
    """
    exponent = scale * negatives
    if negative_mask is None:
        return (delta - positive + exponent.logsumexp(1) / scale).clamp(min=0)
    hinge = (delta - positive + _masked_log_sum_exp(exponent, negative_mask) / scale).clamp(min=0)
    return torch.where(negative_mask.any(1), hinge, 0)


def _masked_log_sum_exp(exponent: Tensor, mask: Tensor) -> Tensor:
    """log Σ exp over all axes but the first, where ``mask`` is True; 0 for an empty row."""
    exponent, mask = exponent.flatten(1), mask.flatten(1)
    is_filled = mask.any(1)
    # A row of only −inf has NaN gradients, so an empty row keeps its finite values.
    exponent = exponent.masked_fill(~mask & is_filled[:, None], -math.inf)
    return torch.where(is_filled, exponent.logsumexp(1), 0)
