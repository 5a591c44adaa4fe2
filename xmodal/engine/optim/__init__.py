"""Optimizers, their wrapper and its constructor, and schedules."""

from xmodal.engine.optim.albef_lr import AlbefLR
from xmodal.engine.optim.bert_adam import BertAdam
from xmodal.engine.optim.constructor import NoDecayConstructor
from xmodal.engine.optim.wrapper import SafeAmpOptimWrapper

__all__ = ['SafeAmpOptimWrapper', 'AlbefLR', 'BertAdam', 'NoDecayConstructor']
