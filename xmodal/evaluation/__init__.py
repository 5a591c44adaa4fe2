"""Metrics, one a benchmark."""

from xmodal.evaluation.classification import EntailmentMetric, ReasoningMetric
from xmodal.evaluation.grounding import GroundingMetric, grounding_metrics
from xmodal.evaluation.retrieval import Gallery, RetrievalMetric, retrieval_metrics
from xmodal.evaluation.scores import (
    ScoreMatrix,
    average_scores,
    read_scores,
    write_scores,
)
from xmodal.evaluation.vqa import VqaMetric, score_submission, vqa_accuracy

__all__ = [
    'EntailmentMetric',
    'Gallery',
    'GroundingMetric',
    'ReasoningMetric',
    'RetrievalMetric',
    'ScoreMatrix',
    'VqaMetric',
    'average_scores',
    'grounding_metrics',
    'read_scores',
    'retrieval_metrics',
    'score_submission',
    'vqa_accuracy',
    'write_scores',
]
