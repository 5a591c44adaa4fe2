"""A uniform choice."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar('Item')


def pick(options: Sequence[Item], rng: np.random.Generator) -> Item:
    """One of the options, each with the same probability."""
    return options[rng.integers(len(options))]
