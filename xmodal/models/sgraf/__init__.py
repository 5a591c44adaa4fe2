"""How well images and captions match: token sets in, a score a pair out."""

from xmodal.models.sgraf.all_pairs import score_all_pairs
from xmodal.models.sgraf.global_pooling import SelfAttentionGlobal, SketchGlobal
from xmodal.models.sgraf.pooled import PooledSimilarity
from xmodal.models.sgraf.saf_sgr import SAF, SGR
from xmodal.models.sgraf.similarity import SGRAFSimilarity

__all__ = [
    'SGRAFSimilarity',
    'PooledSimilarity',
    'SAF',
    'SGR',
    'SelfAttentionGlobal',
    'SketchGlobal',
    'score_all_pairs',
]
