"""Parts of models, and the models assembled from them, a folder a family."""

from xmodal.models import backbones, fusion, heads, layers, losses, necks
from xmodal.models.albef import (
    AlbefBackbone,
    AlbefClassifier,
    AlbefNLVR,
    AlbefPretrainer,
    AlbefVectorClassifier,
    AlbefVectorVQA,
    AlbefVQA,
    TextAssignmentPretrainer,
)
from xmodal.models.base import (
    CrossModalBackbone,
    CrossModalModel,
    ImageTextPreprocessor,
    MomentumModel,
    RegionTextPreprocessor,
)
from xmodal.models.emkum import EmkumModel
from xmodal.models.lxmert import LxmertBackbone, LxmertNLVR, LxmertPretrainer, LxmertVQA
from xmodal.models.sgraf import ImageTextMatcher
from xmodal.models.unimodal import MultiLabelClassifier

__all__ = [
    'AlbefBackbone',
    'AlbefClassifier',
    'AlbefNLVR',
    'AlbefPretrainer',
    'AlbefVQA',
    'AlbefVectorClassifier',
    'AlbefVectorVQA',
    'CrossModalBackbone',
    'CrossModalModel',
    'EmkumModel',
    'ImageTextMatcher',
    'ImageTextPreprocessor',
    'LxmertBackbone',
    'LxmertNLVR',
    'LxmertPretrainer',
    'LxmertVQA',
    'MomentumModel',
    'MultiLabelClassifier',
    'RegionTextPreprocessor',
    'TextAssignmentPretrainer',
    'backbones',
    'fusion',
    'heads',
    'layers',
    'losses',
    'necks',
]
