"""A Transformer layer over one modality."""

from torch import Tensor, nn

from xmodal.models.layers.attention import Attention
from xmodal.models.layers.feed_forward import FeedForward
from xmodal.structures import CrossTerms


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward over one modality, post-norm as in BERT.

    Args:
        embed_dims: D.
        num_heads: heads of the attention.
        feedforward_dims: width of the feed-forward block.
        dropout: probability, as BERT's.
    """

    def __init__(
        self, embed_dims: int, num_heads: int, feedforward_dims: int, dropout: float
    ) -> None:
        super().__init__()
        self.self_attention = Attention(embed_dims, num_heads, dropout)
        self.self_norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.feed_forward = FeedForward(embed_dims, feedforward_dims, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """(B, L, D) to (B, L, D); ``bias`` on the logits, (B or 1, heads, L, L) or None."""
        projected = self.self_attention.project(tokens)
        attended, _ = self.self_attention(projected, projected, mask, CrossTerms(bias=bias))
        return self.feed_forward(self.self_norm(tokens + self.dropout(attended)))
