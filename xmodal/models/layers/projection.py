"""Projections: from a pooled vector to the space that images and texts share."""

from torch import Tensor, nn


class ResidualProjection(nn.Module):
    """A linear layer, and beside it a feed-forward network, over normalised features.

    Args:
        in_dims: width of the pooled tokens.
        out_dims: d.
        hidden_dims: width of the feed-forward network.
        dropout: between its layers.
    """

    def __init__(self, in_dims: int, out_dims: int, hidden_dims: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(in_dims)
        self.linear = nn.Linear(in_dims, out_dims)
        self.feed_forward = make_feed_forward(in_dims, hidden_dims, out_dims, dropout)

    def forward(self, pooled: Tensor) -> Tensor:
        """(B, in_dims) to (B, d)."""
        pooled = self.norm(pooled)
        return self.linear(pooled) + self.feed_forward(pooled)


def make_feed_forward(
    in_dims: int, hidden_dims: int, out_dims: int, dropout: float
) -> nn.Sequential:
    """Two linear layers, with dropout between them."""
    return nn.Sequential(
        nn.Linear(in_dims, hidden_dims),
        nn.GELU(),
        nn.Dropout(dropout),
        nn.Linear(hidden_dims, out_dims),
    )


def make_projection(
    in_dims: int, out_dims: int, hidden_dims: int | None, dropout: float
) -> nn.Module:
    """One linear layer, or a :class:`ResidualProjection` where ``hidden_dims`` is given."""
    if hidden_dims is None:
        return nn.Linear(in_dims, out_dims)
    return ResidualProjection(in_dims, out_dims, hidden_dims, dropout)
