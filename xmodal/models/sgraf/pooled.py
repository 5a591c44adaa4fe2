"""The similarity of a dual encoder."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.models.layers import build_pooling, make_projection, pool
from xmodal.models.sgraf.pairwise import PairwiseSimilarity
from xmodal.registry import MODELS
from xmodal.structures import Tokens


class Vectors(NamedTuple):
    """One vector an item, L2-normalised, (B, d) float32."""

    vectors: Tensor


@MODELS.register_module()
class PooledSimilarity(PairwiseSimilarity):
    """The cosine of one vector an image and one a caption: pooling → projection → cosine.

    Args:
        embed_dims: D, width of regions and words; or the width of each.
        image_pooling: config of the pooling of regions.
        text_pooling: config of the pooling of words.
        proj_dims: d, width of the vectors.
        hidden_dims: width of the feed-forward network of a :class:`ResidualProjection`; None for
            one linear layer.
        dropout: inside the feed-forward network.
    """

    compares_tokens = False

    def __init__(
        self,
        embed_dims: int | tuple[int, int],
        image_pooling: dict,
        text_pooling: dict,
        proj_dims: int = 1024,
        hidden_dims: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        image_dims, text_dims = (
            (embed_dims, embed_dims) if isinstance(embed_dims, int) else embed_dims
        )
        self.image_pooling = build_pooling(image_pooling, image_dims, 'similarity.image_pooling')
        self.text_pooling = build_pooling(text_pooling, text_dims, 'similarity.text_pooling')
        widths = self.image_pooling.out_dims, self.text_pooling.out_dims
        self.image_proj, self.text_proj = (
            make_projection(width, proj_dims, hidden_dims, dropout) for width in widths
        )

    def precompute_images(self, images: Tokens, dtype: torch.dtype) -> Vectors:
        """The images' vectors."""
        return Vectors(self.image_vectors(images))

    def precompute_texts(self, texts: Tokens, dtype: torch.dtype) -> Vectors:
        """The captions' vectors."""
        return Vectors(self.text_vectors(texts))

    def image_vectors(self, images: Tokens) -> Tensor:
        """Pooled and projected regions, (I, d)."""
        return _vectors(images, self.image_pooling, self.image_proj)

    def text_vectors(self, texts: Tokens) -> Tensor:
        """Pooled and projected words, (T, d)."""
        return _vectors(texts, self.text_pooling, self.text_proj)

    def score(self, images: Vectors, texts: Vectors, weights: list) -> Tensor:
        """Cosines, (I, T)."""
        return images.vectors @ texts.vectors.T

    def word_bytes(self, dtype: torch.dtype) -> int:
        """A score at most."""
        return 4

    def forward(
        self,
        images: Tokens,
        texts: Tokens,
        needed: Callable[[Tensor], Tensor | None] | None = None,
    ) -> Tensor:
        """Cosines of all pairs, with gradients, (I, T)."""
        vectors = self.image_vectors(images), self.text_vectors(texts)
        with torch.autocast(images.embeddings.device.type, enabled=False):
            return vectors[0] @ vectors[1].T


def _vectors(tokens: Tokens, pooling: nn.Module, projection: nn.Module) -> Tensor:
    pooled = pool(pooling, tokens.embeddings, tokens.attention_mask)
    with torch.autocast(pooled.device.type, enabled=False):
        return F.l2_normalize(projection(pooled.float()))
