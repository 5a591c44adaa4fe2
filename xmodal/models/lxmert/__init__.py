"""LXMERT: three encoders over objects and words, pre-training, VQA, GQA and NLVR2."""

from xmodal.models.lxmert.backbone import LxmertBackbone
from xmodal.models.lxmert.nlvr import LxmertNLVR
from xmodal.models.lxmert.pretrainer import LxmertPretrainer
from xmodal.models.lxmert.vqa import LxmertVQA

__all__ = ['LxmertBackbone', 'LxmertNLVR', 'LxmertPretrainer', 'LxmertVQA']
