"""Models, and the parts they are assembled from."""

from xmodal.models import backbones, fusion, heads, necks
from xmodal.models.answerer import AnswerGenerator
from xmodal.models.classifier import CrossModalClassifier
from xmodal.models.network import CrossModalNetwork
from xmodal.models.preprocessor import ImageTextPreprocessor
from xmodal.models.pretrainer import CrossModalPretrainer
from xmodal.models.reasoner import CrossModalReasoner, TextAssignmentPretrainer
from xmodal.models.tagger import ImageTagger

__all__ = [
    'AnswerGenerator',
    'CrossModalClassifier',
    'CrossModalNetwork',
    'CrossModalPretrainer',
    'CrossModalReasoner',
    'ImageTagger',
    'ImageTextPreprocessor',
    'TextAssignmentPretrainer',
    'backbones',
    'fusion',
    'heads',
    'necks',
]
