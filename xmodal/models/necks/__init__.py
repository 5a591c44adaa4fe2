"""Necks between encoders and fusion: positions, sketches and token types."""

from xmodal.models.necks.absolute_position import AbsolutePosition
from xmodal.models.necks.ace_rpe import AnchorRelativePosition, UniformPosition
from xmodal.models.necks.anchor_absolute import AnchorAbsolutePosition
from xmodal.models.necks.emde import EMDE, SketchPooling
from xmodal.models.necks.position import NoPosition
from xmodal.models.necks.relative_position import AbsoluteRelativePosition, RelativePosition
from xmodal.models.necks.temde import TEMDE
from xmodal.models.necks.token_type import TokenTypeEmbedding

__all__ = [
    'EMDE',
    'TEMDE',
    'AbsolutePosition',
    'AbsoluteRelativePosition',
    'AnchorAbsolutePosition',
    'AnchorRelativePosition',
    'NoPosition',
    'RelativePosition',
    'SketchPooling',
    'TokenTypeEmbedding',
    'UniformPosition',
]
