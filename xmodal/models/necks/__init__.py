"""What stands between encoders and fusion: positions, poolings and token types."""

from xmodal.models.necks.ace_rpe import AnchorRelativePosition, UniformPosition
from xmodal.models.necks.emde import Emde, SketchPooling
from xmodal.models.necks.pooling import GPOPooling, MaxPooling, MeanPooling
from xmodal.models.necks.position import (
    AbsolutePosition,
    AbsoluteRelativePosition,
    CrossTerms,
    LowRank,
    NoPosition,
    Relation,
    RelativePosition,
)
from xmodal.models.necks.t_emde import TEmde
from xmodal.models.necks.token_type import TokenTypeEmbedding

__all__ = [
    'AbsolutePosition',
    'AbsoluteRelativePosition',
    'AnchorRelativePosition',
    'CrossTerms',
    'Emde',
    'GPOPooling',
    'LowRank',
    'MaxPooling',
    'MeanPooling',
    'NoPosition',
    'Relation',
    'RelativePosition',
    'SketchPooling',
    'TEmde',
    'TokenTypeEmbedding',
    'UniformPosition',
]
