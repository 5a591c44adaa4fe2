"""Metrics, one a benchmark."""

from xmodal.evaluation.retrieval import Gallery, retrieval_metrics

__all__ = ['Gallery', 'retrieval_metrics']
