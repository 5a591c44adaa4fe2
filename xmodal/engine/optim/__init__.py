"""Optimizer wrapper and its constructor."""

from xmodal.engine.optim.constructor import NoDecayConstructor
from xmodal.engine.optim.wrapper import AnyDeviceOptimWrapper

__all__ = ['AnyDeviceOptimWrapper', 'NoDecayConstructor']
