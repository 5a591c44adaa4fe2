"""Models, and the parts they are assembled from."""

from xmodal.models import backbones, fusion, heads, necks, similarity
from xmodal.models.albef.backbone import AlbefBackbone
from xmodal.models.albef.classifier import AlbefClassifier
from xmodal.models.albef.nlvr import AlbefNLVR, TextAssignmentPretrainer
from xmodal.models.albef.pretrainer import AlbefPretrainer
from xmodal.models.albef.vqa import AlbefVQA
from xmodal.models.base.preprocessor import ImageTextPreprocessor
from xmodal.models.base.region_preprocessor import RegionTextPreprocessor
from xmodal.models.emkum.model import EmkumModel
from xmodal.models.lxmert import (
    LxmertBackbone,
    LxmertNLVR,
    LxmertPretrainer,
    LxmertVQA,
)
from xmodal.models.sgraf.matcher import ImageTextMatcher
from xmodal.models.unimodal.multi_label_classifier import MultiLabelClassifier

__all__ = [
    'LxmertVQA',
    'AlbefVQA',
    'AlbefClassifier',
    'AlbefBackbone',
    'AlbefPretrainer',
    'AlbefNLVR',
    'EmkumModel',
    'MultiLabelClassifier',
    'ImageTextPreprocessor',
    'LxmertBackbone',
    'LxmertPretrainer',
    'LxmertNLVR',
    'ImageTextMatcher',
    'RegionTextPreprocessor',
    'TextAssignmentPretrainer',
    'backbones',
    'fusion',
    'heads',
    'necks',
    'similarity',
]
