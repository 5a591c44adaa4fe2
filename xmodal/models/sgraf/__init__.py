"""SGRAF and dual encoders: similarities of token sets, and the matcher that trains them."""

from xmodal.models.sgraf.all_pairs import score_all_pairs
from xmodal.models.sgraf.global_pooling import SelfAttentionGlobal, SketchGlobal
from xmodal.models.sgraf.matcher import ImageTextMatcher
from xmodal.models.sgraf.pooled import PooledSimilarity
from xmodal.models.sgraf.saf_sgr import SAF, SGR
from xmodal.models.sgraf.similarity import SGRAFSimilarity

__all__ = [
    'ImageTextMatcher',
    'SGRAFSimilarity',
    'PooledSimilarity',
    'SAF',
    'SGR',
    'SelfAttentionGlobal',
    'SketchGlobal',
    'score_all_pairs',
]
