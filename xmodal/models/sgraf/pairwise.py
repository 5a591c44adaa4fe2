"""The interface of similarities that are scored pair by pair."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from xmodal.structures import Tokens

Precomputed = TypeVar('Precomputed', bound=tuple)


class PairwiseSimilarity(nn.Module, ABC):
    """Scores of images with captions, computed tile by tile.

    What depends on an image, on a caption or on the weights alone is computed once, before the
    pairs. Letters: I images, T captions, R regions, L words, D width.

    Attributes:
        compares_tokens: whether regions are compared with words, and so must have their width.
    """

    compares_tokens = True

    @abstractmethod
    def precompute_images(self, images: Tokens, dtype: torch.dtype) -> tuple:
        """A NamedTuple of what pairs need of images, I rows each; products are in ``dtype``."""

    @abstractmethod
    def precompute_texts(self, texts: Tokens, dtype: torch.dtype) -> tuple:
        """A NamedTuple of what pairs need of captions, T rows each."""

    def precompute_weights(self, dtype: torch.dtype) -> list:
        """What pairs need that depends on the weights alone."""
        return []

    @abstractmethod
    def score(self, images: tuple, texts: tuple, weights: list) -> Tensor:
        """Logits of one tile, (I, T); the captions are of one length, without padding."""

    @abstractmethod
    def word_bytes(self, dtype: torch.dtype) -> int:
        """Memory that a tile takes for each word of a caption and each image."""

    def image_vectors(self, images: Tokens) -> Tensor | None:
        """L2-normalised vectors whose cosines are the scores, (I, d); None if there are none."""
        return None

    def text_vectors(self, texts: Tokens) -> Tensor | None:
        """Those of captions, (T, d)."""
        return None

    def to_scores(self, logits: Tensor) -> Tensor:
        """What a margin refers to and an ensemble averages, a monotone function of the logits."""
        return logits

    @abstractmethod
    def forward(
        self,
        images: Tokens,
        texts: Tokens,
        needed: Callable[[Tensor], Tensor | None] | None = None,
    ) -> Tensor:
        """Logits of all pairs, with gradients.

        Args:
            images: I images.
            texts: T captions, padded at the end.
            needed: from the scores of all pairs to those that the loss depends on, (I, T) bool, or
                None for all. The others may come out as −inf.

        Returns:
            (I, T) float32.
        """


def drop_idle_mask(tokens: Tokens) -> Tokens:
    """The same tokens without their mask, where all are real."""
    mask = tokens.attention_mask
    return tokens if mask is None or not mask.all() else tokens._replace(attention_mask=None)


def take(precomputed: Precomputed, rows: Tensor | slice) -> Precomputed:
    """The given rows of every tensor."""
    return type(precomputed)(*(None if x is None else x[rows] for x in precomputed))


def join(parts: list[Precomputed]) -> Precomputed:
    """The rows of all parts."""
    columns = zip(*parts, strict=True)
    return type(parts[0])(*(None if x[0] is None else torch.cat(x) for x in columns))
