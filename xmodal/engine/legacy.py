"""Checkpoints of earlier versions or of wrapped models, whose weights have other names."""

import copy
import re
from collections.abc import Container

from torch import Tensor

#: Regular expressions and their replacements, applied to every name in this order.
RENAMED_KEYS: list[tuple[str, str]] = [
    (r'^module\.', ''),  # of a wrapper for several processes
    (r'^network\.', 'backbone.'),
    (r'^twin\.module\.network\.', 'teacher.module.backbone.'),
    (r'^twin\.', 'teacher.'),
    (r'attention\.query\.(weight|bias)$', r'attention.q_proj.\1'),
    (r'attention\.key\.(weight|bias)$', r'attention.k_proj.\1'),
    (r'attention\.value\.(weight|bias)$', r'attention.v_proj.\1'),
    (r'attention\.output\.(weight|bias)$', r'attention.out_proj.\1'),
    (r'\.expand\.(weight|bias)$', r'.fc1.\1'),
    (r'\.contract\.(weight|bias)$', r'.fc2.\1'),
    (r'\b(image|text)_projection\.', r'\1_proj.'),
    (r'^queue\.(image|text)_vectors$', r'queue.\1_embeddings'),
    (r'^head\.log_temperature$', 'loss_module.temperature.log'),
    (r'^heads\.(\w+)\.log_(temperature|scale)$', r'heads.\1.temperature.log'),
]


def current_names(state_dict: dict[str, Tensor], known: Container[str] = ()) -> dict[str, Tensor]:
    """Returns a state dict with the names of this version, in the same order.

    Args:
        state_dict: weights by their names.
        known: names of the model, which stay: a part of it may have a name that another part had.
    """
    renamed = copy.copy(state_dict)  # keeps PyTorch's metadata
    for name in state_dict:
        renamed[name if name in known else _current_name(name)] = renamed.pop(name)
    return renamed


def _current_name(name: str) -> str:
    for pattern, replacement in RENAMED_KEYS:
        name = re.sub(pattern, replacement, name)
    return name
