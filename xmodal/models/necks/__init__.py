"""What stands between encoders and fusion: positions, poolings and token types."""

from xmodal.models.layers.pooling import GPOPooling, MaxPooling, MeanPooling
from xmodal.models.necks.ace_rpe import AnchorRelativePosition, UniformPosition
from xmodal.models.necks.emde import EMDE, SketchPooling
from xmodal.models.necks.position import (
    AbsolutePosition,
    AbsoluteRelativePosition,
    CrossTerms,
    LowRank,
    NoPosition,
    Relation,
    RelativePosition,
)
from xmodal.models.necks.temde import TEMDE
from xmodal.models.necks.token_type import TokenTypeEmbedding

__all__ = [
    'AbsolutePosition',
    'AbsoluteRelativePosition',
    'AnchorRelativePosition',
    'CrossTerms',
    'EMDE',
    'GPOPooling',
    'LowRank',
    'MaxPooling',
    'MeanPooling',
    'NoPosition',
    'Relation',
    'RelativePosition',
    'SketchPooling',
    'TEMDE',
    'TokenTypeEmbedding',
    'UniformPosition',
]
