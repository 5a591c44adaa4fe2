"""Norms that are safe for zero vectors."""

import torch
from torch import Tensor

from xmodal.functional.precision import full_precision

_SHORTEST = 1e-8


@full_precision
def l2_normalize(x: Tensor) -> Tensor:
    """x / ‖x‖₂ along the last axis; a vector shorter than 1e-8 becomes zero, without gradient."""
    return x * inverse_norm(x)


@full_precision
def inverse_norm(x: Tensor) -> Tensor:
    """1 / ‖x‖₂, (…, 1); 0 without gradient for a vector shorter than 1e-8."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    # The gradient of 1 / length would be NaN at 0, and that of x / 1e-8 would drown all others.
    return length.clamp(min=_SHORTEST).reciprocal().masked_fill(length < _SHORTEST, 0)
