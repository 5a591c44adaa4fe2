"""The layers of the encoders that stand on their own attention."""

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from xmodal.models.layers.attention import QKV, Attention
from xmodal.models.necks.position import CrossTerms


class FeedForward(nn.Module):
    """Two linear layers with a GELU between them, residual and post-norm as in BERT.

    Args:
        embed_dims: D.
        feedforward_dims: width between the layers.
        dropout: probability on the output.
    """

    def __init__(self, embed_dims: int, feedforward_dims: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.expand = nn.Linear(embed_dims, feedforward_dims)
        self.contract = nn.Linear(feedforward_dims, embed_dims)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(embed_dims, eps=1e-12)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, L, D) to (B, L, D)."""
        # A sixth of a layer's activations is the GELU's result: made again when it is needed.
        hidden = checkpoint(
            self._activate_and_contract,
            self.expand(tokens),
            use_reentrant=False,
            preserve_rng_state=False,
        )
        return self.norm(tokens + self.dropout(hidden))

    def _activate_and_contract(self, hidden: Tensor) -> Tensor:
        return self.contract(nn.functional.gelu(hidden))


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
        asking: QKV,
        context: QKV,
        context_mask: Tensor | None,
        terms: CrossTerms,
        need_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Cross-attention and feed-forward of one stream: new tokens, and probabilities or None."""
        attended, weights = self.cross_attention(asking, context, context_mask, terms, need_weights)
        return self.feed_forward(self.cross_norm(tokens + self.dropout(attended))), weights


def init_linear(module: nn.Module, embed_dims: int) -> None:
    """Draws the linear layers in a module as BERT's: N(0, 0.02²), biases 0.

    0.02 is BERT's at its width of 768; narrower layers start larger, as 1 / √width does.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.02 * (768 / embed_dims) ** 0.5)
            nn.init.zeros_(layer.bias)
