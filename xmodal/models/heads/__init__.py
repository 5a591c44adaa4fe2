"""Heads: one objective or one task each."""

from xmodal.models.heads.anchor import AnchorHead
from xmodal.models.heads.anchor_contrast import AnchorContrastHead
from xmodal.models.heads.answer_decoder import AnswerDecoder
from xmodal.models.heads.answer_table import AnswerTableHead
from xmodal.models.heads.classification import ClassificationHead, PooledClassificationHead
from xmodal.models.heads.distillation import DistillationHead
from xmodal.models.heads.itc import ContrastiveHead, ITCHead
from xmodal.models.heads.itm import ITMHead
from xmodal.models.heads.lxmert_itm import LxmertITMHead
from xmodal.models.heads.mim import MIMHead
from xmodal.models.heads.mlm import LxmertMLMHead, MLMHead
from xmodal.models.heads.objects import ObjectHead
from xmodal.models.heads.pretrain_head import PretrainHead
from xmodal.models.heads.pretrain_heads import PretrainHeads
from xmodal.models.heads.word_contrast import WordContrastHead
from xmodal.models.heads.word_swap import WordSwapITMHead

__all__ = [
    'AnchorContrastHead',
    'AnchorHead',
    'AnswerDecoder',
    'AnswerTableHead',
    'ClassificationHead',
    'ContrastiveHead',
    'DistillationHead',
    'ITCHead',
    'ITMHead',
    'LxmertITMHead',
    'LxmertMLMHead',
    'MIMHead',
    'MLMHead',
    'ObjectHead',
    'PooledClassificationHead',
    'PretrainHead',
    'PretrainHeads',
    'WordContrastHead',
    'WordSwapITMHead',
]
