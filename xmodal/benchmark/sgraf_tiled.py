"""SAF and SGR as xmodal scores them, and the parts of it that are computed once an item."""

import torch
from torch import Tensor

from xmodal.models.sgraf import SGRAFSimilarity, score_all_pairs
from xmodal.structures import PackedTexts, Tokens


class TiledScoring:
    """Scores as the test does: vectors of images and captions once, then all pairs tile by tile.

    Args:
        similarity: in evaluation mode.
        dtype: of the large products.
        compile: compile the computation of a tile.

    Attributes:
        shard: None: nothing is computed anew for parts of the test set.
    """

    shard = None

    def __init__(
        self,
        similarity: SGRAFSimilarity,
        dtype: torch.dtype = torch.float32,
        compile: bool = False,
    ) -> None:
        self.similarity, self.dtype, self.compile = similarity, dtype, compile

    def score(self, images: Tensor, captions: list[Tensor]) -> Tensor:
        """Computes the logits of all pairs, (I, T).

        Args:
            images: region tokens, (I, R, D).
            captions: T texts of (L, D).
        """
        texts, options = PackedTexts.from_list(captions), dict(compile=self.compile)
        return score_all_pairs(self.similarity, Tokens(images), texts, dtype=self.dtype, **options)

    def pool_images(self, images: Tensor) -> None:
        """Computes what pairs need of images."""
        self.similarity.precompute_images(Tokens(images), self.dtype)

    def pool_captions(self, captions: list[Tensor]) -> None:
        """Computes what pairs need of captions, those of one length at once."""
        for length in {len(words) for words in captions}:
            bucket = torch.stack([words for words in captions if len(words) == length])
            self.similarity.precompute_texts(Tokens(bucket), self.dtype)
