"""Metrics, one a benchmark."""

from xmodal.evaluation.classification import EntailmentMetric, ReasoningMetric
from xmodal.evaluation.grounding import GroundingMetric, grounding_metrics
from xmodal.evaluation.retrieval import Gallery, RetrievalMetric, retrieval_metrics
from xmodal.evaluation.vqa import VqaMetric, score_submission, vqa_accuracy

__all__ = [
    'EntailmentMetric',
    'Gallery',
    'GroundingMetric',
    'ReasoningMetric',
    'RetrievalMetric',
    'VqaMetric',
    'grounding_metrics',
    'retrieval_metrics',
    'score_submission',
    'vqa_accuracy',
]
