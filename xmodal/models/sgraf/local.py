"""What each word sees of an image, compared with the word."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from xmodal.models.layers import xavier_linear
from xmodal.models.sgraf.difference import NormalizedDifference
from xmodal.products import batched_product, product

EPS = 1e-8


class PrecomputedImages(NamedTuple):
    """What pairs need of images.

    Attributes:
        regions: V, in the type of the products, (I, R, D).
        gram: V Vᵀ in float32, (I, R, R).
        vectors: of the global pooling, (I, …), or None.
        mask: True for real regions, (I, R) bool; None when all are.
    """

    regions: Tensor
    gram: Tensor
    vectors: Tensor | None
    mask: Tensor | None


class LocalSimilarity(nn.Module):
    """One similarity vector a word (SGRAF, Diao et al., AAAI 2021, Secs. 3.2-3.3).

    a_r = softmax_r(λ · l2norm_words(LeakyReLU(v_r · w))), c = l2norm(Σ_r a_r v_r) and
    s = l2norm(W (c − w)² + b); the norm over the words of a caption is SCAN's.

    ‖Σ_r a_r v_r‖² = aᵀ V Vᵀ a costs R² instead of another pass over D, so that c is had from one
    product with normalised weights.

    Args:
        embed_dims: D, width of regions and words.
        dim: S, width of a similarity vector.
        smooth: λ.

    Shape:
        words: (T, L, D), the same captions for all B images, or (B, T, L, D), other ones for each.
        Returns (B, T, L, S).
    """

    def __init__(self, embed_dims: int, dim: int, smooth: float) -> None:
        super().__init__()
        self.smooth = smooth
        self.linear = xavier_linear(embed_dims, dim)

    def forward(self, images: PrecomputedImages, words: Tensor) -> Tensor:
        """The similarity vectors."""
        return self.jointly(images, [words])[0]

    def jointly(self, images: PrecomputedImages, tiles: Sequence[Tensor]) -> list[Tensor]:
        """The similarity vectors of several tiles, whose captions are of one length each.

        All words are multiplied with regions and W at once: the products are larger, and the
        gradient of the regions is summed once.
        """
        flat = [words.flatten(-3, -2) for words in tiles]
        joined, sizes = _join(flat), [words.shape[-2] for words in flat]
        scores = self.scores(images, joined).split(sizes, 1)
        pairs = zip(tiles, scores, strict=True)
        weights = _join([self.attend(images, x, words.shape[-2]) for words, x in pairs])
        weights, layer = weights.to(joined.dtype), self.linear
        vectors = NormalizedDifference.apply(
            weights, images.regions, joined, layer.weight, layer.bias
        ).split(sizes, 1)
        return [
            own.unflatten(1, (-1, words.shape[-2]))
            for words, own in zip(tiles, vectors, strict=True)
        ]

    def scores(self, images: PrecomputedImages, words: Tensor) -> Tensor:
        """v_r · w, (B, P, R), of words (P, D) or (B, P, D)."""
        if words.dim() == 3:
            return words @ images.regions.mT
        scores = product(words, images.regions.flatten(0, 1))
        return scores.unflatten(1, images.regions.shape[:2]).transpose(0, 1)

    def attend(self, images: PrecomputedImages, scores: Tensor, length: int) -> Tensor:
        """Weights of the regions for every word, such that their sum of regions has norm 1.

        Args:
            images: B images.
            scores: of P words of captions of one length, (B, P, R).
            length: L, of each caption.

        Returns:
            (B, P, R) float32.
        """
        scores = leaky_relu(scores.float(), 0.1).unflatten(1, (-1, length))
        scores = self.smooth * scores * _inverse_length(scores.square().sum(2, keepdim=True))
        if images.mask is not None:
            scores = scores.masked_fill(~images.mask[:, None, None], -torch.inf)
        weights = scores.softmax(-1).flatten(1, 2)
        squared = (batched_product(weights, images.gram) * weights).sum(-1, keepdim=True)
        return weights * _inverse_length(squared)


def _join(parts: list[Tensor]) -> Tensor:
    """The rows of all parts, (…, P, …), without a copy of a single one."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, -2)


def _inverse_length(squared: Tensor) -> Tensor:
    """1 / √x; 0 without gradient for what has no direction, as :func:`F.l2_normalize`."""
    return squared.clamp(min=EPS**2).rsqrt().masked_fill(squared < EPS**2, 0)
