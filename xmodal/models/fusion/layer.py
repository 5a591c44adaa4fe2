"""The layer of the fusion encoder."""

from torch import Tensor, nn

from xmodal.models.layers import QKV, Attention, FeedForward
from xmodal.structures import CrossTerms


class FusionLayer(nn.Module):
    """Self-attention, cross-attention and feed-forward, post-norm as in BERT.

    One set of weights serves whichever stream passes through. The steps are apart because the
    first two depend on one modality alone and are therefore done once for all pairs it is in.

    Args:
        embed_dims: D.
        num_heads: heads of both attentions.
        feedforward_dims: width of the feed-forward block.
        dropout: probability, as BERT's.
        output_projection: whether the cross-attention has one (ALBEF's has, ACE-RPE's has not).
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        feedforward_dims: int,
        dropout: float,
        output_projection: bool,
    ) -> None:
        super().__init__()
        self.self_attention = Attention(embed_dims, num_heads, dropout)
        self.self_norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.cross_attention = Attention(embed_dims, num_heads, dropout, output_projection)
        self.cross_norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.feed_forward = FeedForward(embed_dims, feedforward_dims, dropout)
        self.dropout = nn.Dropout(dropout)

    def attend_self(self, tokens: Tensor, mask: Tensor | None, bias: Tensor | None) -> Tensor:
        """Self-attention of one stream, (B, L, D); ``bias`` (B or 1, heads, L, L) or None."""
        projected = self.self_attention.project(tokens)
        terms = CrossTerms(bias=bias)
        attended, _ = self.self_attention(projected, projected, mask, terms)
        return self.self_norm(tokens + self.dropout(attended))

    def attend_cross(
        self,
        tokens: Tensor,
        query: QKV,
        context: QKV,
        context_mask: Tensor | None,
        terms: CrossTerms,
        need_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Cross-attention and feed-forward of one stream: new tokens, and probabilities or None."""
        attended, weights = self.cross_attention(query, context, context_mask, terms, need_weights)
        return self.feed_forward(self.cross_norm(tokens + self.dropout(attended))), weights
