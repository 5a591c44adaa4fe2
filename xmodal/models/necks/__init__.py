"""What stands between encoders and fusion: positions and poolings."""

from xmodal.models.necks.ace_rpe import AnchorRelativePosition, UniformPosition
from xmodal.models.necks.position import (
    AbsolutePosition,
    AbsoluteRelativePosition,
    CrossTerms,
    LowRank,
    NoPosition,
    Relation,
    RelativePosition,
)

__all__ = [
    'AbsolutePosition',
    'AbsoluteRelativePosition',
    'AnchorRelativePosition',
    'CrossTerms',
    'LowRank',
    'NoPosition',
    'Relation',
    'RelativePosition',
    'UniformPosition',
]
