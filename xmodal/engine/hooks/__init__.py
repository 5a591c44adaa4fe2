"""Hooks."""

from xmodal.engine.hooks.data import BrokenImageHook
from xmodal.engine.hooks.momentum import MomentumDistillationHook
from xmodal.engine.hooks.robust import NonFiniteHook, PreemptionHook, ReproducibleHook

__all__ = [
    'BrokenImageHook',
    'MomentumDistillationHook',
    'NonFiniteHook',
    'PreemptionHook',
    'ReproducibleHook',
]
