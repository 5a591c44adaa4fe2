"""What each word sees of an image, compared with the word."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from xmodal import functional as F
from xmodal.models.sgraf.difference import ProjectedDifference
from xmodal.models.sgraf.linear import xavier_linear
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
        length, flat = words.shape[-2], words.flatten(-3, -2)
        weights = self.attend(images, flat, length).to(flat.dtype)
        layer = self.linear
        vectors = ProjectedDifference.apply(weights, images.regions, flat, layer.weight, layer.bias)
        return F.l2_normalize(vectors).unflatten(1, (-1, length))

    def attend(self, images: PrecomputedImages, words: Tensor, length: int) -> Tensor:
        """Weights of the regions for every word, such that their sum of regions has norm 1.

        Args:
            images: B images.
            words: P words of captions of one length, (P, D) or (B, P, D).
            length: L, of each caption.

        Returns:
            (B, P, R) float32.
        """
        if words.dim() == 2:
            scores = product(words, images.regions.flatten(0, 1))
            scores = scores.unflatten(1, images.regions.shape[:2]).transpose(0, 1)
        else:
            scores = words @ images.regions.mT
        scores = leaky_relu(scores.float(), 0.1).unflatten(1, (-1, length))
        scores = self.smooth * scores * _inverse_length(scores.square().sum(2, keepdim=True))
        if images.mask is not None:
            scores = scores.masked_fill(~images.mask[:, None, None], -torch.inf)
        weights = scores.softmax(-1).flatten(1, 2)
        squared = (batched_product(weights, images.gram) * weights).sum(-1, keepdim=True)
        return weights * _inverse_length(squared)


def _inverse_length(squared: Tensor) -> Tensor:
    """1 / √x; 0 without gradient for what has no direction, as :func:`F.l2_normalize`."""
    return squared.clamp(min=EPS**2).rsqrt().masked_fill(squared < EPS**2, 0)
