"""Learned temperatures."""

import math

import torch
from torch import Tensor, nn


def exp_within(logarithm: nn.Parameter, low: float, high: float) -> Tensor:
    """The number whose logarithm is learned, held in [low, high].

    The parameter itself is moved back, so that at a bound it keeps a gradient and can leave it.
    """
    with torch.no_grad():
        logarithm.clamp_(math.log(low), math.log(high))
    return logarithm.exp()
