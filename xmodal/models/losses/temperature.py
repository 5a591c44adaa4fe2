"""Learned temperatures."""

import math

import torch
from torch import Tensor, nn


class _Clamp(torch.autograd.Function):
    """Clamps; at a bound and beyond it, passes only a gradient whose step leads back inside."""

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


class LearnedTemperature(nn.Module):
    """A learned temperature T, of which logits are similarity / T.

    The learned parameter is a logarithm, so that a step of Adam changes T by a share and never
    crosses zero. At a bound T can come back, which a plain clamp, with its zero gradient, prevents.

    Args:
        initial: T at the start.
        minimum: smallest T.
        maximum: largest T.
        inverse: learn log (1 / T), as CLIP does, instead of log T.
    """

    def __init__(
        self, initial: float, minimum: float, maximum: float, inverse: bool = False
    ) -> None:
        super().__init__()
        self.inverse = inverse
        bounds = (1 / maximum, 1 / minimum) if inverse else (minimum, maximum)
        self.low, self.high = map(math.log, bounds)
        self.log = nn.Parameter(
            torch.tensor(-math.log(initial)) if inverse else torch.tensor(initial).log()
        )

    def forward(self) -> Tensor:
        """T, a scalar."""
        value = _Clamp.apply(self.log, self.low, self.high).exp()
        return 1 / value if self.inverse else value

    def scale(self, similarity: Tensor) -> Tensor:
        """Similarities as logits."""
        value = _Clamp.apply(self.log, self.low, self.high).exp()
        return value * similarity if self.inverse else similarity / value
