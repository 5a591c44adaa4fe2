"""Models, and the parts they are assembled from."""

from xmodal.models import backbones, fusion, heads, necks, similarity
from xmodal.models.answerer import AnswerGenerator
from xmodal.models.classifier import CrossModalClassifier
from xmodal.models.emkum import EmkumModel
from xmodal.models.lxmert import (
    AnswerClassifier,
    LxmertNetwork,
    LxmertPretrainer,
    LxmertReasoner,
)
from xmodal.models.matcher import MatchingModel
from xmodal.models.network import CrossModalNetwork
from xmodal.models.preprocessor import ImageTextPreprocessor
from xmodal.models.pretrainer import CrossModalPretrainer
from xmodal.models.reasoner import CrossModalReasoner, TextAssignmentPretrainer
from xmodal.models.region_preprocessor import RegionTextPreprocessor
from xmodal.models.tagger import ImageTagger

__all__ = [
    'AnswerClassifier',
    'AnswerGenerator',
    'CrossModalClassifier',
    'CrossModalNetwork',
    'CrossModalPretrainer',
    'CrossModalReasoner',
    'EmkumModel',
    'ImageTagger',
    'ImageTextPreprocessor',
    'LxmertNetwork',
    'LxmertPretrainer',
    'LxmertReasoner',
    'MatchingModel',
    'RegionTextPreprocessor',
    'TextAssignmentPretrainer',
    'backbones',
    'fusion',
    'heads',
    'necks',
    'similarity',
]
