"""Hooks."""

from xmodal.engine.hooks.anchor_auc import AnchorAucHook
from xmodal.engine.hooks.broken_images import BrokenImageHook
from xmodal.engine.hooks.checkpoint import ExactCheckpointHook
from xmodal.engine.hooks.collapse import CollapseHook, NegativesWarmupHook
from xmodal.engine.hooks.delayed_heads import DelayedHeadsHook
from xmodal.engine.hooks.early_stopping import EarlyStoppingHook
from xmodal.engine.hooks.layer_scale import LayerScaleStatsHook
from xmodal.engine.hooks.momentum import MomentumDistillationHook
from xmodal.engine.hooks.non_finite import NonFiniteHook
from xmodal.engine.hooks.preemption import PreemptionHook
from xmodal.engine.hooks.seeding import IterationSeedHook
from xmodal.engine.hooks.weight_ema import WeightEMAHook

__all__ = [
    'AnchorAucHook',
    'BrokenImageHook',
    'CollapseHook',
    'ExactCheckpointHook',
    'DelayedHeadsHook',
    'EarlyStoppingHook',
    'LayerScaleStatsHook',
    'MomentumDistillationHook',
    'NegativesWarmupHook',
    'NonFiniteHook',
    'PreemptionHook',
    'IterationSeedHook',
    'WeightEMAHook',
]
