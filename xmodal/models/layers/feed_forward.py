"""The feed-forward block of a Transformer layer."""

from torch import Tensor, nn
from torch.nn.functional import gelu


class FeedForward(nn.Module):
    """Two linear layers with a GELU between them, residual and post-norm as in BERT.

    Args:
        embed_dims: D.
        feedforward_dims: width between the layers.
        dropout: probability on the output.
    """

    def __init__(self, embed_dims: int, feedforward_dims: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.fc1 = nn.Linear(embed_dims, feedforward_dims)
        self.fc2 = nn.Linear(feedforward_dims, embed_dims)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(embed_dims, eps=1e-12)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, L, D) to (B, L, D)."""
        return self.norm(tokens + self.dropout(self.activate(self.fc1(tokens))))

    def activate(self, hidden: Tensor) -> Tensor:
        """GELU and second layer, which the engine may recompute in the backward pass."""
        return self.fc2(gelu(hidden))
