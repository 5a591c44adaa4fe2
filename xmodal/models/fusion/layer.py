"""The layer of the fusion encoder."""

from torch import Tensor, nn

from xmodal.models.layers import QKV, Attention, FeedForward
from xmodal.structures import CrossTerms, select_tokens
from xmodal.structures.relation import select_biases


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

    def attend_self(
        self,
        tokens: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        queries: Tensor | None = None,
    ) -> Tensor:
        """Self-attention of one stream.

        Args:
            tokens: (B, L, D).
            mask: True for real tokens, (B, L) bool.
            bias: added to the logits, (B or 1, heads, L, L), or None.
            queries: the tokens that attend, (B, W) int64; None for all.

        Returns:
            The new tokens, (B, L, D), or (B, W, D) of ``queries``.
        """
        if queries is None:
            query = context = self.self_attention.project(tokens)
        else:
            context = self.self_attention.project(tokens, query=False)
            tokens = select_tokens(tokens, queries)
            query = self.self_attention.project(tokens, context=False)
            bias = None if bias is None else select_biases(bias, queries)
        attended, _ = self.self_attention(query, context, mask, CrossTerms(bias=bias))
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
