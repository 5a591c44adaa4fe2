"""The typed objects that travel between the stages of a model."""

from xmodal.structures.data_sample import DataSample
from xmodal.structures.texts import PackedTexts
from xmodal.structures.tokens import (
    CrossAttentions,
    Encoded,
    Fused,
    ImageTextBatch,
    ObjectLabels,
    Regions,
    RegionTextBatch,
    Tokens,
    select_rows,
)

__all__ = [
    'CrossAttentions',
    'DataSample',
    'Encoded',
    'Fused',
    'ImageTextBatch',
    'ObjectLabels',
    'PackedTexts',
    'RegionTextBatch',
    'Regions',
    'Tokens',
    'select_rows',
]
