"""The heart of a tile: words against what they see, squared, and projected."""

from torch import Tensor
from torch.autograd import Function

from xmodal.products import batched_product, product, product_of_rows


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
        difference = batched_product(weights, regions).sub_(words)
        return product(difference.square_(), weight, bias)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, ...]:
        """The gradients of all five."""
        weights, regions, words, weight = ctx.saved_tensors
        difference = batched_product(weights, regions).sub_(words)
        flat = gradient.flatten(0, 1)
        squares = difference.flatten(0, 1).square()
        weight_gradient = product_of_rows(flat, squares).to(weight.dtype)
        bias_gradient = flat.sum(0, dtype=weight.dtype)
        difference = difference.mul_(product(gradient, 2 * weight.T))
        word_gradient = -(difference.sum(0) if words.dim() == 2 else difference)
        return (
            difference @ regions.mT,
            weights.mT @ difference,
            word_gradient,
            weight_gradient,
            bias_gradient,
        )
