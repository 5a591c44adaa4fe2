"""Metrics, one a benchmark."""

from xmodal.evaluation.retrieval import Gallery, RetrievalMetric, retrieval_metrics

__all__ = ['Gallery', 'RetrievalMetric', 'retrieval_metrics']
