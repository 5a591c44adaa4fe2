"""One head a task."""

from xmodal.models.heads.answer import AnswerDecoder
from xmodal.models.heads.classification import ClassificationHead
from xmodal.models.heads.contrastive import AnchorHead, ITCHead
from xmodal.models.heads.itm import ITMHead
from xmodal.models.heads.mim import MIMHead
from xmodal.models.heads.mlm import MLMHead
from xmodal.models.heads.triplet import InfoNCEHead, TripletHead

__all__ = [
    'AnchorHead',
    'AnswerDecoder',
    'ClassificationHead',
    'ITCHead',
    'ITMHead',
    'InfoNCEHead',
    'MIMHead',
    'MLMHead',
    'TripletHead',
]
