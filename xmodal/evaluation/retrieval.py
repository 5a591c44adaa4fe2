"""Image-text retrieval: recalls both ways, several captions an image."""

from typing import NamedTuple

import torch
from torch import Tensor

from xmodal.registry import METRICS

RECALLS = (1, 5, 10)


class Gallery(NamedTuple):
    """Scores of every image with every text, and who belongs to whom.

    Attributes:
        scores: higher is better, (images, texts).
        owner: row of the image each text belongs to, (texts,) int64.
        similarity: the first stage's scores, where the best were ranked again; else None.
    """

    scores: Tensor
    owner: Tensor
    similarity: Tensor | None = None


def ranks(scores: Tensor, relevant: Tensor) -> Tensor:
    """Rank of each query's best relevant candidate, from 1.

    A tie counts against us: every irrelevant candidate with the same score stands before it.

    Args:
        scores: (queries, candidates).
        relevant: bool, of the same shape; at least one a row.

    Raises:
        ValueError: when a score is NaN, or a query has nothing relevant.
    """
    if scores.isnan().any():
        raise ValueError(f'{int(scores.isnan().sum())} of {scores.numel()} scores are NaN')
    if not relevant.any(1).all():
        raise ValueError(f'{int((~relevant.any(1)).sum())} queries have no relevant candidate')
    best = scores.masked_fill(~relevant, -torch.inf).amax(1, keepdim=True)
    return 1 + ((scores >= best) & ~relevant).sum(1)


def summarize(found: Tensor) -> dict[str, float]:
    """Recalls in percent, median rank and mean reciprocal rank, of ranks (queries,)."""
    found = found.double()
    metrics = {f'R@{k}': float((found <= k).double().mean() * 100) for k in RECALLS}
    metrics['median_rank'] = float(found.quantile(0.5))
    metrics['mrr'] = float((1 / found).mean() * 100)
    return metrics


def fold_of_images(images: int, folds: int) -> Tensor:
    """The part each image is in, in order, (images,) int64.

    Raises:
        ValueError: when the images do not divide into the folds.
    """
    if images % folds:
        raise ValueError(f'{images} images do not divide into {folds} folds')
    return torch.arange(images) // (images // folds)


def retrieval_metrics(gallery: Gallery, folds: int = 1) -> dict[str, float]:
    """Metrics of text retrieval (``i2t``) and image retrieval (``t2i``).

    Args:
        gallery: scores and owners.
        folds: parts of the images that are searched apart, in order; COCO's 1K figures are the mean
            over five. With more than one, ``*_std`` is the deviation over them.

    Returns:
        ``i2t/R@1`` … ``t2i/mrr``, ``mean_recall`` (of the six recalls, in percent) and ``rsum``.

    Raises:
        ValueError: when the images do not divide into the folds.
    """
    fold = fold_of_images(len(gallery.scores), folds)
    parts = []
    for number in range(folds):
        rows = (fold == number).nonzero().squeeze(1)
        columns = fold[gallery.owner] == number
        owner = gallery.owner[columns] - rows[0]
        parts.append(_fold_metrics(gallery.scores[rows][:, columns], owner))
    if folds == 1:
        return parts[0]
    stacked = {name: torch.tensor([part[name] for part in parts]) for name in parts[0]}
    means = {name: float(values.mean()) for name, values in stacked.items()}
    return means | {f'{name}_std': float(values.std()) for name, values in stacked.items()}


@METRICS.register_module()
class RetrievalMetric:
    """:func:`retrieval_metrics` as a component of a config.

    Args:
        folds: parts of the images that are searched apart.
    """

    def __init__(self, folds: int = 1) -> None:
        self.folds = folds

    def __call__(self, gallery: Gallery) -> dict[str, float]:
        """Metrics of a gallery."""
        return retrieval_metrics(gallery, self.folds)


def _fold_metrics(scores: Tensor, owner: Tensor) -> dict[str, float]:
    relevant = owner == torch.arange(len(scores))[:, None]
    ways = {
        'i2t': summarize(ranks(scores, relevant)),
        't2i': summarize(ranks(scores.T, relevant.T)),
    }
    metrics = {f'{way}/{name}': value for way, own in ways.items() for name, value in own.items()}
    metrics['rsum'] = sum(own[f'R@{k}'] for own in ways.values() for k in RECALLS)
    metrics['mean_recall'] = metrics['rsum'] / (2 * len(RECALLS))
    return metrics


def two_stage_scores(similarity: Tensor, pairs: Tensor, matching: Tensor) -> Tensor:
    """Scores whose order is: re-ranked pairs by matching, then the others by similarity.

    Args:
        similarity: contrastive, (images, texts).
        pairs: image and text of the re-ranked pairs, (P, 2) int64.
        matching: their matching scores, (P,).
    """
    lowest = matching.min() if len(matching) else similarity.new_zeros(())
    scores = similarity.double() - similarity.double().max() + lowest.double() - 1
    scores[pairs[:, 0], pairs[:, 1]] = matching.double()
    return scores


def candidate_pairs(similarity: Tensor, owner: Tensor, topk: int, folds: int = 1) -> Tensor:
    """The best ``topk`` texts of every image and images of every text, each pair once.

    Args:
        similarity: (images, texts).
        owner: row of the image each text belongs to, (texts,) int64.
        topk: candidates of each query.
        folds: parts of the images that are searched apart; candidates are of a query's own part.

    Returns:
        (P, 2) int64, ordered by image.
    """
    images, texts = similarity.shape
    fold = fold_of_images(images, folds)
    apart = fold[:, None] != fold[owner]
    similarity = similarity.masked_fill(apart, -torch.inf)
    chosen = torch.zeros_like(similarity, dtype=torch.bool)
    chosen.scatter_(1, similarity.topk(min(topk, texts), dim=1).indices, True)
    chosen.scatter_(0, similarity.topk(min(topk, images), dim=0).indices, True)
    return (chosen & ~apart).nonzero()
