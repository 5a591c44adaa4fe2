"""Encoders: each encodes one modality to tokens."""

from xmodal.models.backbones.crops import CropExtractor
from xmodal.models.backbones.detector import DetectorExtractor
from xmodal.models.backbones.encoder import Encoder
from xmodal.models.backbones.frozen import EncoderTeacher, FrozenTeacher, TimmTeacher
from xmodal.models.backbones.grid import GridFeatureEncoder
from xmodal.models.backbones.grid_ensemble import GridEnsemble
from xmodal.models.backbones.gru import GruTextEncoder
from xmodal.models.backbones.image import ViTImageEncoder
from xmodal.models.backbones.objects import ObjectEncoder
from xmodal.models.backbones.region import RegionEncoder
from xmodal.models.backbones.text import BertTextEncoder, BertWordEncoder
from xmodal.models.backbones.timm_grid import GridExtractor, TimmGrid
from xmodal.models.backbones.timm_image import TimmImageEncoder
from xmodal.models.backbones.transformers_text import TransformersTextEncoder

__all__ = [
    'CropExtractor',
    'DetectorExtractor',
    'BertTextEncoder',
    'BertWordEncoder',
    'Encoder',
    'EncoderTeacher',
    'FrozenTeacher',
    'GridEnsemble',
    'GridExtractor',
    'GridFeatureEncoder',
    'GruTextEncoder',
    'ObjectEncoder',
    'RegionEncoder',
    'TimmGrid',
    'TimmImageEncoder',
    'TimmTeacher',
    'TransformersTextEncoder',
    'ViTImageEncoder',
]
