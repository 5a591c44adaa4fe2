"""Losses: functions of tensors, and modules that a config names."""

from xmodal.models.losses.clip import CLIPLoss, gather_with_gradient
from xmodal.models.losses.contrastive import contrastive_loss
from xmodal.models.losses.distillation import distilled_cross_entropy
from xmodal.models.losses.temperature import LearnedTemperature
from xmodal.models.losses.triplet import InfoNCELoss, PairLoss, TripletLoss

__all__ = [
    'CLIPLoss',
    'InfoNCELoss',
    'LearnedTemperature',
    'PairLoss',
    'TripletLoss',
    'contrastive_loss',
    'distilled_cross_entropy',
    'gather_with_gradient',
]
