"""The heart of a tile: words against what they see, squared, projected and normalised."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd import Function

from xmodal import functional as F
from xmodal.products import batched_difference, batched_product, product, product_of_rows

# Differences that are computed at once, each of a word with an image. On a CPU they are read again
# before they leave the cache, and are enough for products to run at full rate: 512 or fewer take up
# to a tenth longer on an AMD Zen 4.
CPU_ROWS, OTHER_ROWS = 1024, 2**20


class NormalizedDifference(Function):
    """l2norm((a V − w)² Wᵀ + b), which keeps nothing of the width D for the backward pass.

    That computes the difference again, which costs a fraction of the projection. (a, V, w, W, b)
    are the weights (B, P, R), regions (B, R, D), words (P, D) or (B, P, D), and the linear layer's
    (S, D) and (S,). Products are in the type of V; the result, (B, P, S), has float32 at least, and
    vectors without a direction are zero, without gradient, as by :func:`F.l2_normalize`.
    """

    @staticmethod
    def forward(
        ctx, weights: Tensor, regions: Tensor, words: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        """The vectors of length 1."""
        exact = torch.promote_types(regions.dtype, torch.float32)
        result = regions.new_empty(*weights.shape[:2], len(weight), dtype=exact)
        inverse = regions.new_empty(*weights.shape[:2], 1, dtype=exact)
        projection = weight.to(regions.dtype)
        for piece, difference in _differences(weights, regions, words):
            vectors = product(difference.square_(), projection, bias)
            if vectors.dtype != exact:
                vectors = result[piece].copy_(vectors)
            inverse[piece] = F.inverse_norm(vectors)
            torch.mul(vectors, inverse[piece], out=result[piece])
        ctx.save_for_backward(weights, regions, words, weight, result, inverse)
        return result

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, ...]:
        """The gradients of all five."""
        weights, regions, words, weight, result, inverse = ctx.saved_tensors
        slope = (2 * weight.T).to(regions.dtype)
        of_weights, of_regions = torch.empty_like(weights), torch.zeros_like(regions)
        of_words = torch.zeros_like(words, dtype=weight.dtype)
        of_weight, of_bias = torch.zeros_like(weight), weight.new_zeros(len(weight))
        for piece, difference in _differences(weights, regions, words):
            images, part, unit = piece[0], gradient[piece], result[piece]
            along = (part * unit).sum(-1, keepdim=True)
            part = torch.addcmul(part, unit, along, value=-1).mul_(inverse[piece])
            of_bias += part.sum((0, 1))
            part = part.to(regions.dtype)
            squares = difference.square().flatten(0, 1)
            of_weight += product_of_rows(part.flatten(0, 1), squares)
            difference = difference.mul_(product(part, slope))
            of_weights[piece] = batched_product(difference, regions[images].mT)
            of_regions[images] += batched_product(weights[piece].mT, difference)
            own = of_words[piece[1:]] if words.dim() == 2 else of_words[piece]
            # the sum of one would be a pass of its own
            own -= difference[0] if len(difference) == 1 else difference.sum_to_size(own.shape)
        return of_weights, of_regions, of_words.to(words.dtype), of_weight, of_bias


def _differences(
    weights: Tensor, regions: Tensor, words: Tensor
) -> Iterator[tuple[tuple[slice, slice], Tensor]]:
    """Some words of a few images after the other, and their a V − w, (b, p, D)."""
    images, rows = weights.shape[:2]
    at_once = CPU_ROWS if weights.device.type == 'cpu' else OTHER_ROWS
    count = max(1, min(rows, at_once))
    step = max(1, at_once // count)
    memory = regions.new_empty(min(step, images), count, regions.shape[2])
    for image in range(0, max(1, images), step):
        for row in range(0, max(1, rows), count):
            piece = slice(image, image + step), slice(row, row + count)
            own = words[piece[1:]] if words.dim() == 2 else words[piece]
            part = weights[piece]
            out = memory[: len(part), : part.shape[1]]
            yield piece, batched_difference(part, regions[piece[:1]], own, out)
