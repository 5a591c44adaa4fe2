"""The similarity of a dual encoder."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.models.sgraf.pairwise import PairwiseSimilarity
from xmodal.registry import MODELS
from xmodal.structures import Tokens


class Vectors(NamedTuple):
    """One vector an item, L2-normalised, (B, d) float32."""

    vectors: Tensor


@MODELS.register_module()
class PooledSimilarity(PairwiseSimilarity):
    """The cosine of one vector an image and one a caption: pooling → linear → cosine.

    Args:
        embed_dims: D, width of regions and words.
        image_pooling: config of the pooling of regions.
        text_pooling: config of the pooling of words.
        proj_dims: d, width of the vectors.
    """

    def __init__(
        self, embed_dims: int, image_pooling: dict, text_pooling: dict, proj_dims: int = 1024
    ) -> None:
        super().__init__()
        self.image_pooling = MODELS.build({**image_pooling, 'embed_dims': embed_dims})
        self.text_pooling = MODELS.build({**text_pooling, 'embed_dims': embed_dims})
        self.image_proj = nn.Linear(self.image_pooling.out_dims, proj_dims)
        self.text_proj = nn.Linear(self.text_pooling.out_dims, proj_dims)

    def precompute_images(self, images: Tokens, dtype: torch.dtype) -> Vectors:
        """The images' vectors."""
        return _vectors(images, self.image_pooling, self.image_proj)

    def precompute_texts(self, texts: Tokens, dtype: torch.dtype) -> Vectors:
        """The captions' vectors."""
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
        embeddings = (
            self.precompute_images(images, torch.float32),
            self.precompute_texts(texts, torch.float32),
        )
        with torch.autocast(images.embeddings.device.type, enabled=False):
            return self.score(*embeddings, [])


def _vectors(tokens: Tokens, pooling: nn.Module, projection: nn.Linear) -> Vectors:
    pooled = pooling(tokens.embeddings, tokens.attention_mask)
    with torch.autocast(pooled.device.type, enabled=False):
        return Vectors(F.l2_normalize(projection(pooled.float())))
