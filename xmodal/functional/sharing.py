"""Products with matrices that all pairs of a batch share."""

from torch import Tensor

from xmodal.functional.exporting import is_exporting


def is_shared(x: Tensor) -> bool:
    """Whether x (B, …) is one row, repeated without a copy as ``select_rows`` does."""
    return not is_exporting() and len(x) > 1 and x.stride(0) == 0


def shared_product(x: Tensor, y: Tensor) -> Tensor:
    """x y of B pairs and each of H heads; matrices that all pairs share are not copied for each.

    Args:
        x: (B, H, P, K).
        y: (B, H, K, N).

    Returns:
        (B, H, P, N).
    """
    if not is_shared(y):
        return x @ y
    products = x.transpose(0, 1).flatten(1, 2) @ y[0]  # (H, B · P, N)
    return products.unflatten(1, (len(x), -1)).transpose(0, 1)
