"""What the models of all families share."""

from xmodal.models.base.backbone import CrossModalBackbone, build_token_type
from xmodal.models.base.classifier import ClassifierMixin
from xmodal.models.base.ema_teacher import EMATeacher
from xmodal.models.base.encoding import encode
from xmodal.models.base.image_preprocessor import ImageTextPreprocessor
from xmodal.models.base.model import CrossModalModel
from xmodal.models.base.momentum_model import MomentumModel
from xmodal.models.base.predictions import set_answers
from xmodal.models.base.preprocessor import CrossModalPreprocessor
from xmodal.models.base.queue import MomentumQueue
from xmodal.models.base.region_preprocessor import RegionTextPreprocessor
from xmodal.models.base.tokenizer import build_tokenizer, check_vocabulary

__all__ = [
    'ClassifierMixin',
    'CrossModalBackbone',
    'CrossModalModel',
    'CrossModalPreprocessor',
    'EMATeacher',
    'ImageTextPreprocessor',
    'MomentumModel',
    'MomentumQueue',
    'RegionTextPreprocessor',
    'build_token_type',
    'build_tokenizer',
    'check_vocabulary',
    'encode',
    'set_answers',
]
