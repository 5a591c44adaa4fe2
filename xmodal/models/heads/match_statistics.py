"""Figures of a position by whether the pair matches: logged, not trained."""

from collections.abc import Mapping

import torch
from torch import Tensor


def by_match(
    figures: dict[str, Tensor], matched: Tensor, counts: Tensor | None = None
) -> dict[str, Tensor]:
    """Means over matched and over mismatched pairs, ``NAME_matched`` and ``NAME_mismatched``.

    Args:
        figures: of each pair, (B,) by name, as a position's ``statistics``.
        matched: (B,) bool.
        counts: (B,) bool, False for a pair that stands for none; None where all count.

    Raises:
        ValueError: when a figure is not one number a pair, or its name would make it a loss.
    """
    _check_figures(figures, matched.shape)
    mismatched = ~matched if counts is None else ~matched & counts
    return {
        # Without an index, which a GPU would be waited for.
        f'{name}_{suffix}': figure.where(rows, 0).sum() / rows.sum().clamp(min=1)
        for name, figure in figures.items()
        for suffix, rows in (('matched', matched), ('mismatched', mismatched))
    }


def _check_figures(figures: dict[str, Tensor], shape: torch.Size) -> None:
    """Refuses what is not one number a pair, or would be added to the losses."""
    if not isinstance(figures, Mapping):
        raise ValueError(
            f'position.statistics returned {type(figures).__name__}, expected figures by name'
        )
    for name, figure in figures.items():
        if not isinstance(figure, Tensor) or figure.shape != shape:
            found = tuple(figure.shape) if isinstance(figure, Tensor) else type(figure).__name__
            raise ValueError(
                f"position.statistics: '{name}' is {found}, expected {tuple(shape)}, a "
                'figure of each pair'
            )
        if 'loss' in name:
            raise ValueError(
                f"position.statistics: '{name}' has 'loss' in its name, and would be added to the "
                'losses: statistics are only logged. A head makes a loss'
            )
