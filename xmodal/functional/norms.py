"""Norms that are safe for zero vectors."""

import torch
from torch import Tensor

from xmodal.functional.precision import full_precision


@full_precision
def l2_normalize(x: Tensor, dim: int = -1, eps: float = 1e-8) -> Tensor:
    """x / ‖x‖₂; a vector shorter than ``eps`` becomes zero, without gradient."""
    return _normalize(x, 2, dim, eps)


@full_precision
def l1_normalize(x: Tensor, dim: int = -1, eps: float = 1e-8) -> Tensor:
    """x / Σ|x|; a vector whose sum is below ``eps`` becomes zero, without gradient."""
    return _normalize(x, 1, dim, eps)


@full_precision
def inverse_norm(x: Tensor, order: int = 2, dim: int = -1, eps: float = 1e-8) -> Tensor:
    """1 / ‖x‖, its axis kept; 0 without gradient for a vector shorter than ``eps``."""
    length = torch.linalg.vector_norm(x, order, dim, keepdim=True)
    # The gradient of 1 / length would be NaN at 0, and that of x / eps would drown all others.
    return length.clamp(min=eps).reciprocal().masked_fill(length < eps, 0)


def _normalize(x: Tensor, order: int, dim: int, eps: float) -> Tensor:
    return x * inverse_norm(x, order, dim, eps)
