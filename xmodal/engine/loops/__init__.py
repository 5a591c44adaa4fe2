"""Loops over data."""

from xmodal.engine.loops.all_pairs import MatchingLoop
from xmodal.engine.loops.grounding import GroundingLoop
from xmodal.engine.loops.retrieval import RetrievalLoop
from xmodal.engine.loops.several import CompositeEvalLoop
from xmodal.engine.loops.train import ResumableEpochTrainLoop
from xmodal.engine.loops.zero_shot import ZeroShotLoop

__all__ = [
    'ResumableEpochTrainLoop',
    'GroundingLoop',
    'MatchingLoop',
    'RetrievalLoop',
    'CompositeEvalLoop',
    'ZeroShotLoop',
]
