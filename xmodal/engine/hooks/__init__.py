"""Hooks."""

from xmodal.engine.hooks.collapse import CollapseHook, NegativesWarmupHook
from xmodal.engine.hooks.data import BrokenImageHook
from xmodal.engine.hooks.layer_scale import LayerScaleStatsHook
from xmodal.engine.hooks.momentum import HeadStartHook, MomentumDistillationHook
from xmodal.engine.hooks.robust import (
    ExactCheckpointHook,
    NonFiniteHook,
    PreemptionHook,
    ReproducibleHook,
)

__all__ = [
    'BrokenImageHook',
    'CollapseHook',
    'ExactCheckpointHook',
    'HeadStartHook',
    'LayerScaleStatsHook',
    'MomentumDistillationHook',
    'NegativesWarmupHook',
    'NonFiniteHook',
    'PreemptionHook',
    'ReproducibleHook',
]
