"""LXMERT: three encoders over objects and words, its pre-training, and what is fine-tuned."""

from xmodal.models.lxmert.answer_classifier import AnswerClassifier
from xmodal.models.lxmert.network import LxmertNetwork
from xmodal.models.lxmert.pretrainer import LxmertPretrainer
from xmodal.models.lxmert.reasoner import LxmertReasoner

__all__ = ['AnswerClassifier', 'LxmertNetwork', 'LxmertPretrainer', 'LxmertReasoner']
