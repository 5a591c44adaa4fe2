"""Metrics, one for each benchmark."""

from xmodal.evaluation.classification import EntailmentMetric, ReasoningMetric
from xmodal.evaluation.gqa import GqaMetric, GqaQuestion, gqa_scores
from xmodal.evaluation.grounding import GroundingMetric, grounding_metrics
from xmodal.evaluation.retrieval import Gallery, RetrievalMetric, retrieval_metrics
from xmodal.evaluation.retrieval_results import evaluate_gallery
from xmodal.evaluation.scores import (
    ScoreMatrix,
    average_scores,
    read_scores,
    write_scores,
)
from xmodal.evaluation.skills import SkillMetric, StatementMetric, WinogroundMetric
from xmodal.evaluation.task import TaskMetric
from xmodal.evaluation.vqa import SoftAnswerMetric, VqaMetric, score_submission, vqa_accuracy
from xmodal.evaluation.zero_shot import ZeroShotMetric

__all__ = [
    'EntailmentMetric',
    'Gallery',
    'GqaMetric',
    'GqaQuestion',
    'GroundingMetric',
    'ReasoningMetric',
    'RetrievalMetric',
    'ScoreMatrix',
    'SkillMetric',
    'SoftAnswerMetric',
    'StatementMetric',
    'TaskMetric',
    'VqaMetric',
    'WinogroundMetric',
    'ZeroShotMetric',
    'average_scores',
    'evaluate_gallery',
    'gqa_scores',
    'grounding_metrics',
    'read_scores',
    'retrieval_metrics',
    'score_submission',
    'vqa_accuracy',
    'write_scores',
]
