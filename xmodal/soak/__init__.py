"""Interrupted trainings, compared to the last bit with one that nothing interrupted.

What ``tools/analysis/soak.py`` is made of: a training in a process of its own, the interruptions
that strike it, and the comparison.
"""

from xmodal.soak.compare import Reference
from xmodal.soak.interruptions import KINDS
from xmodal.soak.run import Tool
from xmodal.soak.soak import NO_KIND, Outcome, Soak

__all__ = ['KINDS', 'NO_KIND', 'Outcome', 'Reference', 'Soak', 'Tool']
