"""The ALBEF family: pre-training, entailment, NLVR2 and VQA, with any position inside fusion."""

from xmodal.models.albef.backbone import AlbefBackbone
from xmodal.models.albef.classifier import AlbefClassifier
from xmodal.models.albef.model import AlbefModel
from xmodal.models.albef.nlvr import AlbefNLVR
from xmodal.models.albef.pretrainer import AlbefPretrainer
from xmodal.models.albef.text_assignment import TextAssignmentPretrainer
from xmodal.models.albef.vector_classifier import AlbefVectorClassifier
from xmodal.models.albef.vector_vqa import AlbefVectorVQA
from xmodal.models.albef.vqa import AlbefVQA

__all__ = [
    'AlbefBackbone',
    'AlbefClassifier',
    'AlbefModel',
    'AlbefNLVR',
    'AlbefPretrainer',
    'AlbefVQA',
    'AlbefVectorClassifier',
    'AlbefVectorVQA',
    'TextAssignmentPretrainer',
]
