"""Retrieval in two stages: the candidates that are re-ranked, and the scores of both stages."""

import torch
from torch import Tensor

from xmodal.evaluation.retrieval import fold_of_images


def candidate_pairs(scores: Tensor, text_to_image: Tensor, topk: int, folds: int = 1) -> Tensor:
    """The best ``topk`` texts of every image and images of every text, each pair once.

    Args:
        scores: of the first stage, (I, T).
        text_to_image: row of the image that each text describes, (T,) int64.
        topk: number of candidates of each query.
        folds: number of folds that are searched separately; the candidates of a query are from its
            own fold.

    Returns:
        Rows of image and text, (P, 2) int64, ordered by image.
    """
    num_images, num_texts = scores.shape
    image_folds = fold_of_images(num_images, folds)
    separate = image_folds[:, None] != image_folds[text_to_image]
    scores = scores.masked_fill(separate, -torch.inf)
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    chosen.scatter_(1, scores.topk(min(topk, num_texts), dim=1).indices, True)
    chosen.scatter_(0, scores.topk(min(topk, num_images), dim=0).indices, True)
    return (chosen & ~separate).nonzero()


def two_stage_scores(first_stage: Tensor, pairs: Tensor, reranked: Tensor) -> Tensor:
    """Scores that rank the re-ranked pairs first, then the others by the first stage.

    Args:
        first_stage: (I, T).
        pairs: rows of image and text of the re-ranked pairs, (P, 2) int64.
        reranked: scores of these pairs, (P,).

    Returns:
        (I, T) float64.
    """
    lowest = reranked.min() if len(reranked) else first_stage.new_zeros(())
    scores = first_stage.double() - first_stage.double().max() + lowest.double() - 1
    scores[pairs[:, 0], pairs[:, 1]] = reranked.double()
    return scores
