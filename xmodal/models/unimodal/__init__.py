"""Models of one modality, which train an encoder for the others."""

from xmodal.models.unimodal.multi_label_classifier import MultiLabelClassifier

__all__ = ['MultiLabelClassifier']
