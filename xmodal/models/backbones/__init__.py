"""Encoders: each sees one modality alone and hands on tokens."""

from xmodal.models.backbones.gru import GruTextEncoder
from xmodal.models.backbones.image import ViTImageEncoder
from xmodal.models.backbones.region import RegionEncoder
from xmodal.models.backbones.text import BertTextEncoder, BertWordEncoder

__all__ = [
    'BertTextEncoder',
    'BertWordEncoder',
    'GruTextEncoder',
    'RegionEncoder',
    'ViTImageEncoder',
]
