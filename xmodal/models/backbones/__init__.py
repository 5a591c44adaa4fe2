"""Encoders: each sees one modality alone and hands on tokens."""

from xmodal.models.backbones.frozen import EncoderTeacher, TimmTeacher
from xmodal.models.backbones.gru import GruTextEncoder
from xmodal.models.backbones.image import ViTImageEncoder
from xmodal.models.backbones.objects import ObjectEncoder
from xmodal.models.backbones.region import RegionEncoder
from xmodal.models.backbones.text import BertTextEncoder, BertWordEncoder

__all__ = [
    'BertTextEncoder',
    'BertWordEncoder',
    'EncoderTeacher',
    'GruTextEncoder',
    'ObjectEncoder',
    'RegionEncoder',
    'TimmTeacher',
    'ViTImageEncoder',
]
