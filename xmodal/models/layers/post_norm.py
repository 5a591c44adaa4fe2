"""Transformer blocks with their norms after the sums, for ``timm``'s Vision Transformers."""

from timm.models.vision_transformer import Block
from torch import Tensor


class PostNormBlock(Block):
    """timm's block with BERT's order: x ← norm1(x + attention(x)), x ← norm2(x + mlp(x)).

    (timm's own ``ResPostBlock`` norms the branches, not the sums.)
    """

    def forward(self, x: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        """(B, L, D) to (B, L, D)."""
        x = self.norm1(x + self.drop_path1(self.ls1(self.attn(x, attn_mask=attn_mask))))
        return self.norm2(x + self.drop_path2(self.ls2(self.mlp(x))))
