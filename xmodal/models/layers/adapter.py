"""From the width of an encoder to that of the fusion encoder."""

from torch import Tensor, nn

from xmodal.registry import MODELS


@MODELS.register_module()
class TokenAdapter(nn.Module):
    """A linear layer over tokens, between two norms.

    Args:
        in_dims: F, width of the encoder's tokens.
        embed_dims: D, width of the fusion encoder.
        dropout: share of the features F that are dropped in training.

    Shape:
        (B, L, F) to (B, L, D).
    """

    def __init__(self, in_dims: int, embed_dims: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.input_norm = nn.LayerNorm(in_dims)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(in_dims, embed_dims)
        self.norm = nn.LayerNorm(embed_dims)

    def forward(self, embeddings: Tensor) -> Tensor:
        """The adapted tokens."""
        return self.norm(self.linear(self.dropout(self.input_norm(embeddings))))
