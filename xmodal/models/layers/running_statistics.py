"""The running statistics of a batch norm that is computed for many inputs at once."""

import torch
from torch import Tensor, nn


@torch.no_grad()
def move_statistics(norm: nn.BatchNorm1d, means: Tensor, variances: Tensor) -> None:
    """Moves running statistics as T calls in a row do: the last weighs most.

    Args:
        norm: the batch norm.
        means: of each call, (T, C).
        variances: the unbiased ones, (T, C).
    """
    calls, kept = len(means), 1 - norm.momentum
    ages = torch.arange(calls - 1, -1, -1, device=means.device)
    weight = norm.momentum * torch.full_like(means[:, 0], kept) ** ages
    for running, values in ((norm.running_mean, means), (norm.running_var, variances)):
        running.mul_(kept**calls).add_((weight[:, None] * values).sum(0))
    norm.num_batches_tracked += calls
