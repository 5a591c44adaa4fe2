"""Hooks."""

from xmodal.engine.hooks.data import BrokenImageHook
from xmodal.engine.hooks.momentum import HeadStartHook, MomentumDistillationHook
from xmodal.engine.hooks.robust import NonFiniteHook, PreemptionHook, ReproducibleHook

__all__ = [
    'BrokenImageHook',
    'HeadStartHook',
    'MomentumDistillationHook',
    'NonFiniteHook',
    'PreemptionHook',
    'ReproducibleHook',
]
