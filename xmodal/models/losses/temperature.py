"""Learned temperatures."""

import math

import torch
from torch import Tensor, nn


class _Within(torch.autograd.Function):
    """Clamps; at a bound and beyond, only a gradient whose step leads back inside passes."""

    @staticmethod
    def forward(ctx, value: Tensor, low: float, high: float) -> Tensor:
        ctx.save_for_backward(value)
        ctx.low, ctx.high = low, high
        return value.clamp(low, high)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        (value,) = ctx.saved_tensors
        leads_out = (value <= ctx.low) & (gradient > 0) | (value >= ctx.high) & (gradient < 0)
        return gradient.masked_fill(leads_out, 0), None, None


def exp_within(logarithm: nn.Parameter, low: float, high: float) -> Tensor:
    """The number whose logarithm is learned, held in [low, high].

    At a bound it can come back, which a clamp alone, whose gradient is zero there, prevents.
    """
    return _Within.apply(logarithm, math.log(low), math.log(high)).exp()
