"""Runner, loops, hooks and optimizers."""

from xmodal.engine import hooks, loops, optim
from xmodal.engine.runner import XModalRunner

__all__ = ['XModalRunner', 'hooks', 'loops', 'optim']
