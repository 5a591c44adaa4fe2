"""xmodal: a toolbox for cross-modal (image-text) learning.

``xmodal.list_models``, ``get_model`` and ``Inferencer`` are imported when they are used: PyTorch
takes seconds.
"""

from importlib import import_module
from typing import Any

from xmodal.version import __version__

_LAZY = {
    'Inferencer': 'xmodal.apis',
    'get_model': 'xmodal.apis',
    'list_models': 'xmodal.zoo',
}

__all__ = ['Inferencer', '__version__', 'get_model', 'list_models']


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'xmodal' has no attribute '{name}'")
    return getattr(import_module(_LAZY[name]), name)
