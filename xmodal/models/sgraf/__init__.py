"""SGRAF and dual encoders: similarities of token sets, and the matcher that trains them."""

from xmodal.models.sgraf.all_pairs import score_all_pairs
from xmodal.models.sgraf.global_pooling import SelfAttentionGlobal, SketchGlobal
from xmodal.models.sgraf.matcher import ImageTextMatcher
from xmodal.models.sgraf.narrow import narrow
from xmodal.models.sgraf.pairwise import PairwiseSimilarity
from xmodal.models.sgraf.pooled import PooledSimilarity
from xmodal.models.sgraf.saf_sgr import SAF, SGR
from xmodal.models.sgraf.similarity import SGRAFSimilarity
from xmodal.models.sgraf.some_pairs import score_pairs

__all__ = [
    'ImageTextMatcher',
    'SGRAFSimilarity',
    'PairwiseSimilarity',
    'PooledSimilarity',
    'SAF',
    'SGR',
    'SelfAttentionGlobal',
    'SketchGlobal',
    'narrow',
    'score_all_pairs',
    'score_pairs',
]
