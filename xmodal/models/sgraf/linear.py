"""The linear layers of SGRAF."""

from torch import nn


def xavier_linear(in_features: int, out_features: int, bias: bool = True) -> nn.Linear:
    """A linear layer as SGRAF initialises it: Xavier-uniform weights, zero bias.

    The entries of a squared difference are about 1e-3; PyTorch's bias would dominate them after
    normalising.
    """
    layer = nn.Linear(in_features, out_features, bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
