"""Encoders: each sees one modality alone and hands on tokens."""

from xmodal.models.backbones.image import ViTImageEncoder
from xmodal.models.backbones.text import BertTextEncoder

__all__ = ['BertTextEncoder', 'ViTImageEncoder']
