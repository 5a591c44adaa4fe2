"""Scorers of the retrieval loop."""

from xmodal.engine.loops.scorers.all_pairs import AllPairsScorer
from xmodal.engine.loops.scorers.base import Scorer
from xmodal.engine.loops.scorers.cascade import CascadeScorer
from xmodal.engine.loops.scorers.itm_reranker import ITMReranker

__all__ = ['AllPairsScorer', 'CascadeScorer', 'ITMReranker', 'Scorer']
