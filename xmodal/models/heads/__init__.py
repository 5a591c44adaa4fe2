"""One head a task."""

from xmodal.models.heads.answer import AnswerDecoder
from xmodal.models.heads.answer_table import AnswerTableHead
from xmodal.models.heads.classification import ClassificationHead, PooledClassificationHead
from xmodal.models.heads.clip import CLIPHead
from xmodal.models.heads.contrastive import AnchorHead, ITCHead
from xmodal.models.heads.distillation import DistillationHead
from xmodal.models.heads.itm import ITMHead
from xmodal.models.heads.lxmert_itm import LxmertITMHead
from xmodal.models.heads.mim import MIMHead
from xmodal.models.heads.mlm import MLMHead
from xmodal.models.heads.objects import ObjectHead
from xmodal.models.heads.triplet import InfoNCEHead, TripletHead

__all__ = [
    'AnchorHead',
    'AnswerDecoder',
    'AnswerTableHead',
    'CLIPHead',
    'ClassificationHead',
    'DistillationHead',
    'ITCHead',
    'ITMHead',
    'InfoNCEHead',
    'MIMHead',
    'MLMHead',
    'LxmertITMHead',
    'ObjectHead',
    'PooledClassificationHead',
    'TripletHead',
]
