"""Checkpoints of earlier versions, whose weights have other names."""

import copy
import re

from torch import Tensor

#: Regular expressions of former names and their replacements, applied to each name in this order.
RENAMED_KEYS: list[tuple[str, str]] = []


def current_names(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns a state dict with the names of this version, in the same order."""
    renamed = copy.copy(state_dict)  # keeps PyTorch's metadata
    for name in state_dict:
        renamed[_current_name(name)] = renamed.pop(name)
    return renamed


def _current_name(name: str) -> str:
    for pattern, replacement in RENAMED_KEYS:
        name = re.sub(pattern, replacement, name)
    return name
