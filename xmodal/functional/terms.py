"""The terms that a distance adds to tokens and to attention (ACE-RPE, Eqs. 8-12)."""

import math
from typing import Any

import torch
from torch import Tensor

from xmodal.functional.precision import full_precision


@full_precision
def fill_unreachable(distance: Tensor, null: str = 'zero', far: float = math.inf) -> Tensor:
    """P with a finite value for pairs that no anchor reaches, as input of Eq. 8.

    Args:
        distance: P, (B, 1 + M, 1 + N, G), +inf where masked.
        null: 'zero': no embedding; 'far': the value ``far``; 'learned': zero, and the mask as G
            more channels, so that the lower half of a (2G, D) weight is the null vectors.
        far: the value for 'far'.
    """
    masked = distance.isinf()
    filled = distance.masked_fill(masked, far if null == 'far' else 0.0)
    return torch.cat([filled, masked.to(filled.dtype)], -1) if null == 'learned' else filled


@full_precision
def contextual_means(
    distance: Tensor, image_mask: Tensor | None = None, text_mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """E_j P_ij and E_i P_ij (Eq. 10 before W), over the other modality without padding.

    Args:
        distance: P, finite, (B, 1 + M, 1 + N, G).
        image_mask: (B, 1 + M) bool, None for all.
        text_mask: (B, 1 + N) bool, None for all.

    Returns:
        (B, 1 + M, G) for the patches and (B, 1 + N, G) for the words.
    """
    return _masked_mean(distance, text_mask, 2), _masked_mean(distance, image_mask, 1)


def _masked_mean(distance: Tensor, mask: Tensor | None, axis: int) -> Tensor:
    if mask is None:
        return distance.mean(axis)
    mask = mask[:, None, :, None] if axis == 2 else mask[:, :, None, None]
    return torch.where(mask, distance, 0).sum(axis) / mask.sum(axis).clamp(min=1)


@full_precision
def bias_term(distance: Tensor, weight: Tensor, projection: Tensor) -> Tensor:
    """E_ace W_E (Eq. 9), (B, 1 + M, 1 + N), as P (W W_E); W: (G, D), W_E: (D,)."""
    return distance @ (weight @ projection)


@full_precision
def value_term(attention: Tensor, distance: Tensor, weight: Tensor) -> Tensor:
    """Σ_j a_ij E_ace(i, j) (Eq. 12), with E_ace split over the heads like the values.

    Args:
        attention: a, (B, H, Lq, Lk).
        distance: P from the side of the queries, (B, Lq, Lk, G).
        weight: W, (G, D).

    Returns:
        (B, Lq, D).
    """
    attended = _Attended.apply(attention, distance)  # (B, Lq, H, G)
    weight = weight.unflatten(1, (attention.shape[1], -1)).transpose(0, 1)  # (H, G, D / H)
    return (attended.transpose(1, 2) @ weight).transpose(1, 2).flatten(2)


class _Attended(torch.autograd.Function):
    """Σ_j a_ij P_ij of every head. Stores a and P alone, and not as the product wants them."""

    @staticmethod
    def forward(ctx: Any, attention: Tensor, distance: Tensor) -> Tensor:
        ctx.save_for_backward(attention, distance)
        return _product(attention.transpose(1, 2), distance)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        attention, distance = ctx.saved_tensors
        of_attention, of_distance = ctx.needs_input_grad
        return (
            _product(gradient, distance.mT).transpose(1, 2) if of_attention else None,
            _product(attention.permute(0, 2, 3, 1), gradient) if of_distance else None,
        )


def _product(x: Tensor, y: Tensor) -> Tensor:
    """x y of many small matrices, (B, L, P, K) and (B, L, K, N)."""
    if x.is_cuda and torch.compiler.is_compiling():
        # A GPU has a matrix for each query, too small for its products; a sum joins other kernels.
        return (x[..., None] * y[..., None, :, :]).sum(-2)
    return x @ y
