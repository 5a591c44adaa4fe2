"""LXMERT: three encoders over objects and words, its pre-training, and what is fine-tuned."""

from xmodal.models.lxmert.backbone import LxmertBackbone
from xmodal.models.lxmert.nlvr import LxmertNLVR
from xmodal.models.lxmert.pretrainer import LxmertPretrainer
from xmodal.models.lxmert.vqa import LxmertVQA

__all__ = ['LxmertVQA', 'LxmertBackbone', 'LxmertPretrainer', 'LxmertNLVR']
