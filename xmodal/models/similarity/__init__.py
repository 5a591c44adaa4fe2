"""How well images and captions match: token sets in, a score a pair out."""

from xmodal.models.similarity.engine import score_all_pairs
from xmodal.models.similarity.fusion import FusionSimilarity
from xmodal.models.similarity.global_pooling import SelfAttentionGlobal, SketchGlobal
from xmodal.models.similarity.pooled import PooledSimilarity
from xmodal.models.similarity.reasoning import SAF, SGR

__all__ = [
    'FusionSimilarity',
    'PooledSimilarity',
    'SAF',
    'SGR',
    'SelfAttentionGlobal',
    'SketchGlobal',
    'score_all_pairs',
]
