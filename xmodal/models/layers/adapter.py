"""From the tokens of an encoder to those of the fusion encoder."""

from torch import Tensor, nn

from xmodal.models.layers.projection import make_feed_forward
from xmodal.registry import MODELS


@MODELS.register_module()
class TokenAdapter(nn.Module):
    """A linear layer over tokens, between two norms, and a feed-forward network beside it.

    Args:
        in_dims: F, width of the encoder's tokens.
        embed_dims: D, width of the fusion encoder.
        dropout: share of the features F, and of the hidden ones, that are dropped in training.
        hidden_dims: width of the feed-forward network; None for none.

    Shape:
        (B, L, F) to (B, L, D).
    """

    def __init__(
        self, in_dims: int, embed_dims: int, dropout: float = 0.0, hidden_dims: int | None = None
    ) -> None:
        super().__init__()
        self.input_norm = nn.LayerNorm(in_dims)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(in_dims, embed_dims)
        self.feed_forward = None
        if hidden_dims is not None:
            self.feed_forward = make_feed_forward(in_dims, hidden_dims, embed_dims, dropout)
        self.norm = nn.LayerNorm(embed_dims)

    def forward(self, embeddings: Tensor) -> Tensor:
        """The adapted tokens."""
        tokens = self.dropout(self.input_norm(embeddings))
        adapted = self.linear(tokens)
        if self.feed_forward is not None:
            adapted = adapted + self.feed_forward(tokens)
        return self.norm(adapted)
