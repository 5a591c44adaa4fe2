"""Weights of a fusion encoder with a copy of each layer for each of two images (NLVR2)."""

import re
from re import Match

import torch
from torch import Tensor

_LAYER = re.compile(r'(.*backbone\.fusion\.layers\.)(\d+)(\..+)')


def _find_layers(state_dict: dict[str, Tensor]) -> dict[str, Match[str]]:
    """The names of weights of fusion layers, the model's and its teacher's, in three parts.

    Returns:
        By name: what comes before the layer's number, the number, and what comes after it.
    """
    return {name: match for name in state_dict if (match := _LAYER.fullmatch(name))}


def count_layers(state_dict: dict[str, Tensor]) -> int:
    """The number of fusion layers; 0 for none."""
    return 1 + max((int(match[2]) for match in _find_layers(state_dict).values()), default=-1)


def has_copies(state_dict: dict[str, Tensor]) -> bool:
    """Whether there is a copy of each layer for both images: copies share the keys of words."""
    name = 'backbone.fusion.layers.{}.cross_attention.k_proj.weight'
    first, second = (state_dict.get(name.format(layer)) for layer in (0, 1))
    if first is None or second is None or first.is_meta:  # of a checkpoint that is not trained yet
        return False
    return torch.equal(first, second)


def copy_layers(state_dict: dict[str, Tensor]) -> None:
    """Copies each fusion layer for the second image, as ALBEF does (Pretrain_nlvr.py).

    The copies of a layer follow each other.
    """
    layers = _find_layers(state_dict)
    values = {name: state_dict.pop(name) for name in layers}
    for name, match in layers.items():
        for copy in (0, 1):
            state_dict[f'{match[1]}{2 * int(match[2]) + copy}{match[3]}'] = values[name]
