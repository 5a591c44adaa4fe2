"""The global node: one vector of an image and one of a caption, compared."""

import torch
from timm.layers import LayerScale
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.models.layers import xavier_linear
from xmodal.products import product
from xmodal.registry import MODELS


class GatedPooling(nn.Module):
    """SGRAF's self-attention: the mean of a token set gates its tokens, which are then weighted.

    a = softmax(wᵀ tanh(norm(A t)) ∘ tanh(norm(B mean(t)))), and the result is l2norm(Σ a t). It is
    linear in the number of tokens.

    Args:
        embed_dims: D.
        dropout: probability on both factors.
        tokens: number of tokens, for batch norms after A (over the index of a token in its set, so
            that a set always has this many) and B; None for no norms.

    Shape:
        tokens: (B, L, D) float32; mask: (B, L) bool or None. Returns (B, D).
    """

    def __init__(self, embed_dims: int, dropout: float, tokens: int | None = None) -> None:
        super().__init__()
        self.local = xavier_linear(embed_dims, embed_dims)
        self.mean = xavier_linear(embed_dims, embed_dims)
        self.local_norm = nn.Identity() if tokens is None else nn.BatchNorm1d(tokens)
        self.mean_norm = nn.Identity() if tokens is None else nn.BatchNorm1d(embed_dims)
        self.gate = xavier_linear(embed_dims, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """Pools each set."""
        mean = tokens.mean(1)
        if mask is not None:
            tokens = tokens.masked_fill(~mask[..., None], 0)
            mean = tokens.sum(1) / mask.sum(1, keepdim=True)
        local = self.dropout(self.local_norm(self.local(tokens)).tanh())
        mean = self.dropout(self.mean_norm(self.mean(mean)).tanh())
        logits = self.gate(local * mean[:, None]).float()
        if mask is not None:
            logits = logits.masked_fill(~mask[..., None], -torch.inf)
        return F.l2_normalize((logits.softmax(1) * tokens).sum(1))


@MODELS.register_module()
class SelfAttentionGlobal(nn.Module):
    """The global similarity of SGRAF: l2norm(W (g_image − g_text)² + b), g by self-attention.

    As published, the channels of the image's batch norm are the indices of the regions, so that the
    number and the order of regions are fixed; :class:`SketchGlobal` takes any.

    Args:
        embed_dims: D, width of regions and words.
        dim: S, width of the similarity vector.
        regions: number of regions of every image.
        dropout: probability in both self-attentions.
    """

    def __init__(self, embed_dims: int, dim: int, regions: int = 36, dropout: float = 0.4) -> None:
        super().__init__()
        self.regions = regions
        self.image = GatedPooling(embed_dims, dropout, regions)
        self.text = GatedPooling(embed_dims, dropout)
        self.linear = xavier_linear(embed_dims, dim)

    def pool_images(self, regions: Tensor, mask: Tensor | None) -> Tensor:
        """(I, R, D) to (I, D).

        Raises:
            ValueError: when images have another number of regions, or fewer in training, or a batch
                of the training is a single image.
        """
        if self.training and len(regions) == 1:
            raise ValueError(
                'SelfAttentionGlobal trains on a batch of one image, of which its batch norm has '
                'no variance: set train_dataloader.drop_last=True if it is the rest of an epoch, a '
                'larger train_dataloader.global_batch_size, or take '
                "global_pooling=dict(type='SketchGlobal', …), which takes any number"
            )
        padded = self.training and mask is not None
        if regions.shape[1] != self.regions or padded:
            count = f'up to {regions.shape[1]} with padding' if padded else regions.shape[1]
            raise ValueError(
                f'SelfAttentionGlobal.regions={self.regions}, but images have {count} regions: its '
                'batch norm needs the same number in every image. Set `regions`, or take '
                "global_pooling=dict(type='SketchGlobal', …), which takes any number"
            )
        return self.image(regions, mask)

    def pool_texts(self, words: Tensor, mask: Tensor | None) -> Tensor:
        """(T, L, D) to (T, D)."""
        return self.text(words, mask)

    def compare(self, images: Tensor, texts: Tensor, dtype: torch.dtype) -> Tensor:
        """(B, D) with (T, D) or (B, T, D) to (B, T, S) float32; the product is in ``dtype``."""
        difference = (images[:, None] - texts).square_().to(dtype)
        return F.l2_normalize(product(difference, self.linear.weight, self.linear.bias))


@MODELS.register_module()
class SketchGlobal(nn.Module):
    """The global similarity of T-EMDE: ReLU(W [text; image] + b) of two sketches (Sec. 3.3.1).

    The linear layer is taken apart: each side's part is computed once an item, and a pair costs an
    addition.

    Args:
        embed_dims: D, width of regions and words.
        dim: S, width of the similarity vector.
        pooling: config of the sketch, built once a modality: ``TEMDE``, or any other pooling.
        layer_scale: first value of γ (S,), for γ ⊙ l2norm(…), as local vectors have length 1. The
            paper says nothing of it. SGR reads its result from this node, and needs it: at full
            size the node drowns the others before they have learned anything. None for neither.
    """

    def __init__(
        self, embed_dims: int, dim: int, pooling: dict, layer_scale: float | None = None
    ) -> None:
        super().__init__()
        pooling = {**pooling, 'embed_dims': embed_dims}
        self.image, self.text = MODELS.build(pooling), MODELS.build(pooling)
        self.linear = xavier_linear(self.text.out_dims + self.image.out_dims, dim)
        self.scale = None if layer_scale is None else LayerScale(dim, layer_scale)

    def pool_images(self, regions: Tensor, mask: Tensor | None) -> Tensor:
        """(I, R, D) to the image's part of the product, (I, S)."""
        weight = self.linear.weight[:, self.text.out_dims :]
        return self.image(regions, mask).float() @ weight.T

    def pool_texts(self, words: Tensor, mask: Tensor | None) -> Tensor:
        """(T, L, D) to the text's part of the product, (T, S)."""
        weight = self.linear.weight[:, : self.text.out_dims]
        return self.text(words, mask).float() @ weight.T + self.linear.bias

    def compare(self, images: Tensor, texts: Tensor, dtype: torch.dtype) -> Tensor:
        """(B, S) with (T, S) or (B, T, S) to (B, T, S) float32."""
        vectors = (images[:, None] + texts).relu()
        return vectors if self.scale is None else self.scale(F.l2_normalize(vectors))
