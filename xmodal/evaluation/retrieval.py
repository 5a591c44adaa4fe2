"""Image-text retrieval in both directions, with several captions per image."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from mmengine.evaluator import BaseMetric
from torch import Tensor

from xmodal.errors import ConfigError
from xmodal.evaluation.queries import Queries, QueryResults, require_figures, with_prefix
from xmodal.evaluation.task import add_prefix
from xmodal.registry import METRICS

RECALLS = (1, 5, 10)


class Gallery(NamedTuple):
    """Scores of every image with every text of a test set.

    Attributes:
        scores: higher is better, (I, T).
        text_to_image: row of the image that each text describes, (T,) int64.
        itc_scores: cosines of the first stage, (I, T), where ITM re-ranked the best; else None.
        t2i_scores: of text-to-image retrieval, (I, T), where ``scores`` are those of image-to-text
            retrieval alone; None where ``scores`` are those of both.
    """

    scores: Tensor
    text_to_image: Tensor
    itc_scores: Tensor | None = None
    t2i_scores: Tensor | None = None

    @property
    def directions(self) -> tuple[Tensor, Tensor]:
        """Scores of image-to-text and of text-to-image retrieval, both (I, T)."""
        return self.scores, self.scores if self.t2i_scores is None else self.t2i_scores

    @property
    def stages(self) -> dict[str, 'Gallery']:
        """The scores to measure by prefix: after re-ranking, and those of ITC before it."""
        stages = {'': self}
        if self.itc_scores is not None:
            stages['first_stage'] = Gallery(self.itc_scores, self.text_to_image)
        return stages


def ranks(scores: Tensor, relevant: Tensor) -> Tensor:
    """Rank of each query's best relevant candidate, from 1.

    Ties count against the model: every irrelevant candidate with the same score is ranked first.

    Args:
        scores: (queries, candidates).
        relevant: bool, of the same shape, with at least one True in each row.

    Raises:
        ValueError: when a score is NaN, or a query has no relevant candidate.
    """
    if scores.isnan().any():
        raise ValueError(f'{int(scores.isnan().sum())} of {scores.numel()} scores are NaN')
    if not relevant.any(1).all():
        raise ValueError(f'{int((~relevant.any(1)).sum())} queries have no relevant candidate')
    best = scores.masked_fill(~relevant, -torch.inf).amax(1, keepdim=True)
    return 1 + ((scores >= best) & ~relevant).sum(1)


def summarize(query_ranks: Tensor) -> dict[str, float]:
    """Recalls in percent, median rank and mean reciprocal rank of ranks, (queries,)."""
    query_ranks = query_ranks.double()
    metrics = {f'R@{k}': float((query_ranks <= k).double().mean() * 100) for k in RECALLS}
    metrics['median_rank'] = float(query_ranks.quantile(0.5).floor())  # of two, as VSE++'s
    metrics['mrr'] = float((1 / query_ranks).mean() * 100)
    return metrics


def fold_of_images(num_images: int, folds: int) -> Tensor:
    """The fold of each image, (I,) int64; folds are runs of adjacent images.

    Raises:
        ValueError: when the number of images is not a multiple of the folds.
    """
    if folds < 1 or num_images % folds:
        raise ValueError(
            f'{num_images} images do not divide into {folds} folds, which RetrievalMetric.folds of '
            'the evaluator asks for: give a divisor of the number of images, or folds=1'
        )
    return torch.arange(num_images) // (num_images // folds)


def retrieval_metrics(gallery: Gallery, folds: int = 1) -> dict[str, float]:
    """Metrics of image-to-text (``i2t``) and text-to-image (``t2i``) retrieval.

    Args:
        gallery: scores, and the image of each text.
        folds: number of folds of adjacent images that are searched separately; COCO's 1K figures
            are the mean over five. With more than one, ``*_std`` is the deviation over the folds.

    Returns:
        ``i2t/R@1`` … ``t2i/mrr``, ``mean_recall`` (of the six recalls, in percent) and ``rsum``.

    Raises:
        ValueError: when the number of images is not a multiple of the folds.
    """
    image_folds = fold_of_images(len(gallery.scores), folds)
    per_fold = []
    for fold in range(folds):
        rows = (image_folds == fold).nonzero().squeeze(1)
        columns = (image_folds[gallery.text_to_image] == fold).nonzero().squeeze(1)
        per_fold.append(_fold_metrics(gallery, rows, columns))
    if folds == 1:
        return per_fold[0]
    stacked = {name: torch.tensor([fold[name] for fold in per_fold]) for name in per_fold[0]}
    means = {name: float(values.mean()) for name, values in stacked.items()}
    return means | {f'{name}_std': float(values.std()) for name, values in stacked.items()}


def _fold_metrics(gallery: Gallery, rows: Tensor, columns: Tensor) -> dict[str, float]:
    """Metrics of both directions among some images (rows) and texts (columns)."""
    relevant = gallery.text_to_image[columns] == rows[:, None]
    i2t_scores, t2i_scores = gallery.directions
    directions = {
        'i2t': summarize(ranks(i2t_scores[rows][:, columns], relevant)),
        't2i': summarize(ranks(t2i_scores[rows][:, columns].T, relevant.T)),
    }
    metrics = {
        f'{direction}/{name}': value
        for direction, values in directions.items()
        for name, value in values.items()
    }
    metrics['rsum'] = sum(values[f'R@{k}'] for values in directions.values() for k in RECALLS)
    metrics['mean_recall'] = metrics['rsum'] / (2 * len(RECALLS))
    return metrics


def retrieval_queries(gallery: Gallery, folds: int) -> Queries:
    """The results of :func:`retrieval_metrics` query by query, ``i2t`` and ``t2i``.

    ``rank`` is that of the best relevant candidate in the query's fold, ``score`` is its score. The
    queries of an image and of its texts are one group.
    """
    image_folds, text_to_image = fold_of_images(len(gallery.scores), folds), gallery.text_to_image
    i2t_scores, t2i_scores = gallery.directions
    relevant = text_to_image == torch.arange(len(gallery.scores))[:, None]
    outside = image_folds[text_to_image] != image_folds[:, None]
    tables = {
        'i2t': (i2t_scores, relevant, outside, torch.arange(len(gallery.scores))),
        't2i': (t2i_scores.T, relevant.T, outside.T, text_to_image),
    }
    queries = {}
    for direction, (scores, matching, others, images) in tables.items():
        query_ranks = ranks(scores.masked_fill(others, -torch.inf), matching).double()
        # The mean over folds gives each fold the same weight, however many texts it has.
        sizes = image_folds[images].bincount(minlength=folds)
        weights = len(images) / (folds * sizes[image_folds[images]])
        recalls = {f'R@{k}': 100 * (query_ranks <= k) * weights for k in RECALLS}
        rsum = sum(recalls.values())
        columns = {
            'rank': query_ranks,
            'score': scores.masked_fill(~matching, -torch.inf).amax(1),
            **add_prefix({**recalls, 'mrr': 100 / query_ranks * weights}, direction),
            'rsum': rsum,
            'mean_recall': rsum / (2 * len(RECALLS)),
        }
        queries[direction] = QueryResults(
            np.arange(len(images)).astype(str),
            images.numpy().astype(str),
            {name: values.double().numpy() for name, values in columns.items()},
        )
    return queries


@METRICS.register_module()
class RetrievalMetric(BaseMetric):
    """:func:`retrieval_metrics` of a gallery, and of its ITC stage as ``first_stage/*``.

    It takes one data sample, the whole :class:`Gallery`, which every rank has. Several metrics of
    one gallery are a list with prefixes, as for COCO::

        test_evaluator = [
            dict(type='RetrievalMetric', folds=5, prefix='1k'),
            dict(type='RetrievalMetric', prefix='5k'),
        ]

    A subclass adds figures in :meth:`measure`, and what they are means of in
    :meth:`measure_queries`.

    Args:
        folds: number of folds that are searched separately.
        prefix: in front of the names of the figures, with a slash.
    """

    default_prefix = ''
    keeps_queries = False

    def __init__(self, folds: int = 1, prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        self.folds = folds
        self.queries: Queries = {}

    def process(self, data_batch: dict | None, data_samples: Sequence[Gallery]) -> None:
        """Keeps the gallery.

        Raises:
            ConfigError: when there are samples instead, of a loop that scores no gallery.
        """
        if not all(isinstance(gallery, Gallery) for gallery in data_samples):
            raise ConfigError(
                f'{type(self).__name__} measures the gallery of a RetrievalLoop, and got single '
                'samples: give the loop an evaluator of its own, evaluator=dict(type=…), or '
                "type='RetrievalLoop'"
            )
        self.results += data_samples

    def evaluate(self, size: int) -> dict[str, float]:
        """The figures; nothing is gathered, because every rank has the whole gallery.

        Args:
            size: number of galleries, 1.
        """
        galleries, self.results = self.results, []
        return add_prefix(self.compute_metrics(galleries), self.prefix)

    def compute_metrics(self, results: list[Gallery]) -> dict[str, float]:
        """The figures of the only gallery, of all its stages."""
        (gallery,) = results
        metrics = {}
        for stage, scored in gallery.stages.items():
            figures = self.measure(scored)
            metrics |= add_prefix(figures, stage)
            if self.keeps_queries:
                queries = self.measure_queries(scored)
                require_figures(queries, figures, type(self).__name__)
                prefix = '/'.join(filter(None, (self.prefix, stage)))
                self.queries |= with_prefix(queries, prefix)
        return metrics

    def measure(self, gallery: Gallery) -> dict[str, float]:
        """The figures of one stage, by the gallery's ``directions``."""
        return retrieval_metrics(gallery, self.folds)

    def measure_queries(self, gallery: Gallery) -> Queries:
        """The results of one stage query by query, ``i2t`` and ``t2i``, from which verdicts come.

        A figure of :meth:`measure` is the sum of the means of the columns that have its name.
        """
        return retrieval_queries(gallery, self.folds)
