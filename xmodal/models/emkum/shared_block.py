"""The block that both modalities of EMKUM pass through separately."""

from timm.layers import LayerScale
from torch import Tensor, nn
from torch.nn.functional import gelu

from xmodal.models.layers import Attention, init_linear
from xmodal.structures import Tokens


class SharedBlock(nn.Module):
    """A pre-norm Transformer block with LayerScale on both branches (BEiT's, VLMo's).

    x ← x + λ₁ ⊙ attention(norm(x)), x ← x + λ₂ ⊙ fc2(gelu(fc1(norm(x)))).

    Args:
        embed_dims: D.
        num_heads: of the self-attention.
        feedforward_dims: F, width of the feed-forward block; None for 4 D.
        layer_scale: initial value of λ₁ and λ₂. VLMo and BEiT have 0.1 in twelve blocks.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        feedforward_dims: int | None = None,
        layer_scale: float = 0.2,
    ) -> None:
        super().__init__()
        self.feedforward_dims = feedforward_dims or 4 * embed_dims
        self.attention_norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.attention = Attention(embed_dims, num_heads)
        self.attention_scale = LayerScale(embed_dims, layer_scale)
        self.feedforward_norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.fc1 = nn.Linear(embed_dims, self.feedforward_dims)
        self.fc2 = nn.Linear(self.feedforward_dims, embed_dims)
        self.feedforward_scale = LayerScale(embed_dims, layer_scale)
        init_linear(self, embed_dims)

    def forward(self, tokens: Tokens, only_cls: bool = False) -> tuple[Tokens, Tensor]:
        """The tokens of one modality after the block, and [CLS] inside of it.

        Args:
            tokens: (B, L, D).
            only_cls: whether only [CLS] passes the block, L = 1 of the output; it attends to all.

        Returns:
            Tokens (B, L, D); [CLS] as the feed-forward block has it, before the GELU, (B, F).
        """
        x, mask = tokens.embeddings, tokens.attention_mask
        normed = self.attention_norm(x)
        context = query = self.attention.project(normed, query=not only_cls)
        if only_cls:
            query = self.attention.project(normed[:, :1], context=False)
            x, tokens = x[:, :1], Tokens(x, None if mask is None else mask[:, :1])
        attended, _ = self.attention(query, context, mask)
        x = x + self.attention_scale(attended)
        hidden = self.fc1(self.feedforward_norm(x))
        x = x + self.feedforward_scale(self.fc2(gelu(hidden)))
        return tokens.with_embeddings(x), hidden[:, 0]
