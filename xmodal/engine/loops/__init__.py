"""Loops over data."""

from xmodal.engine.loops.composite import CompositeEvalLoop
from xmodal.engine.loops.evaluation import EvaluationLoop
from xmodal.engine.loops.grounding import GroundingLoop
from xmodal.engine.loops.minimal_pairs import MinimalPairLoop
from xmodal.engine.loops.prediction import PredictionLoop
from xmodal.engine.loops.retrieval import RetrievalLoop
from xmodal.engine.loops.scorers import AllPairsScorer, CascadeScorer, ITMReranker, Scorer
from xmodal.engine.loops.train import ResumableEpochTrainLoop
from xmodal.engine.loops.zero_shot import ZeroShotLoop

__all__ = [
    'AllPairsScorer',
    'CascadeScorer',
    'EvaluationLoop',
    'ResumableEpochTrainLoop',
    'GroundingLoop',
    'ITMReranker',
    'MinimalPairLoop',
    'PredictionLoop',
    'RetrievalLoop',
    'Scorer',
    'CompositeEvalLoop',
    'ZeroShotLoop',
]
