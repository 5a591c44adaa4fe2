"""The heart of a tile: words against what they see, squared, and projected."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd import Function

from xmodal.products import batched_difference, product, product_of_rows

CPU_CACHE_BYTES = 8 * 2**20  # of differences that are read again before they leave the cache


class ProjectedDifference(Function):
    """(a V − w)² Wᵀ + b, of which the backward pass keeps no tensor of the words' width.

    It computes the difference again, which costs a fraction of the projection. (a, V, w, W, b) are
    the weights (B, P, R), regions (B, R, D), words (P, D) or (B, P, D), and the linear layer's
    (S, D) and (S,). The result is (B, P, S), in the type of V, as all products are.
    """

    @staticmethod
    def forward(
        ctx, weights: Tensor, regions: Tensor, words: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        """The projected squares."""
        ctx.save_for_backward(weights, regions, words, weight)
        weight = weight.to(regions.dtype)
        parts = [
            product(difference.square_(), weight, bias)
            for _, difference in _differences(weights, regions, words)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, ...]:
        """The gradients of all five."""
        weights, regions, words, weight = ctx.saved_tensors
        slope = (2 * weight.T).to(regions.dtype)
        of_weights, of_regions = torch.empty_like(weights), torch.empty_like(regions)
        of_words = torch.zeros_like(words, dtype=weight.dtype)
        of_weight = torch.zeros_like(weight)
        for images, difference in _differences(weights, regions, words):
            part = gradient[images]
            squares = difference.square().flatten(0, 1)
            of_weight += product_of_rows(part.flatten(0, 1), squares)
            difference = difference.mul_(product(part, slope))
            torch.bmm(difference, regions[images].mT, out=of_weights[images])
            torch.bmm(weights[images].mT, difference, out=of_regions[images])
            own = of_words if words.dim() == 2 else of_words[images]
            own -= difference.sum_to_size(own.shape)
        of_bias = gradient.sum((0, 1), dtype=weight.dtype)
        return of_weights, of_regions, of_words.to(words.dtype), of_weight, of_bias


def _differences(weights: Tensor, regions: Tensor, words: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """A few images after the other, and their a V − w, (b, P, D); one empty part of no images."""
    total = count = max(1, len(weights))
    if weights.device.type == 'cpu':
        size = weights.shape[1] * regions.shape[2] * regions.dtype.itemsize
        count = max(1, CPU_CACHE_BYTES // max(1, size))
    for start in range(0, total, count):
        images = slice(start, start + count)
        own = words if words.dim() == 2 else words[images]
        yield images, batched_difference(weights[images], regions[images], own)
