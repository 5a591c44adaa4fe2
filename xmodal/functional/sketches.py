"""Sketches of token sets (T-EMDE, Sec. 3.2)."""

from torch import Tensor

from xmodal.functional.precision import full_precision


@full_precision
def centroid_distance(projected: Tensor, centroids: Tensor) -> Tensor:
    """X_euclid = Σ_D (X − C)² (T-EMDE, Sec. 3.2, "Distance computation").

    Args:
        projected: X, the projections of a token into every space, (…, N, K, D).
        centroids: C, (N, K, D).

    Returns:
        (…, N, K).
    """
    return (projected - centroids).square().sum(-1)


@full_precision
def soft_assignment(distance: Tensor, temperature: Tensor) -> Tensor:
    """Y = softmax_K(−temp · X_euclid) (T-EMDE, Sec. 3.2 with the sign of Listing 1), (…, N, K)."""
    return (-temperature * distance).softmax(-1)


@full_precision
def sketch(assignment: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The sum of the assignments of the tokens of a set (T-EMDE, Secs. 3.1 and 3.3.1).

    Sketches are additive: the sketch of a union of sets is the sum of their sketches.

    Args:
        assignment: (B, L, N, K).
        attention_mask: True for real tokens, (B, L) bool, None for all.

    Returns:
        (B, N, K).
    """
    if attention_mask is not None:
        assignment = assignment.masked_fill(~attention_mask[..., None, None], 0)
    return assignment.sum(1)
