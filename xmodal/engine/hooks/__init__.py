"""Hooks."""

from xmodal.engine.hooks.collapse import CollapseHook, NegativesWarmupHook
from xmodal.engine.hooks.data import BrokenImageHook
from xmodal.engine.hooks.layer_scale import LayerScaleStatsHook
from xmodal.engine.hooks.momentum import DelayedHeadsHook, MomentumDistillationHook
from xmodal.engine.hooks.robust import (
    ExactCheckpointHook,
    IterationSeedHook,
    NonFiniteHook,
    PreemptionHook,
)

__all__ = [
    'BrokenImageHook',
    'CollapseHook',
    'ExactCheckpointHook',
    'DelayedHeadsHook',
    'LayerScaleStatsHook',
    'MomentumDistillationHook',
    'NegativesWarmupHook',
    'NonFiniteHook',
    'PreemptionHook',
    'IterationSeedHook',
]
