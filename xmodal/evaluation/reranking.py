"""Retrieval in two stages: the candidates of each direction, and the scores of both stages."""

import torch
from torch import Tensor

from xmodal.evaluation.retrieval import fold_of_images


def find_candidates(
    scores: Tensor, text_to_image: Tensor, topk: int, folds: int = 1
) -> tuple[Tensor, Tensor]:
    """The best ``topk`` texts of every image, and the best ``topk`` images of every text.

    Args:
        scores: of the first stage, (I, T).
        text_to_image: row of the image that each text describes, (T,) int64.
        topk: number of candidates of each query.
        folds: number of folds that are searched separately; the candidates of a query are from its
            own fold.

    Returns:
        The candidates of image-to-text retrieval, and those of text-to-image retrieval, both
        (I, T) bool.
    """
    num_images, num_texts = scores.shape
    image_folds = fold_of_images(num_images, folds)
    together = image_folds[:, None] == image_folds[text_to_image]
    scores = scores.masked_fill(~together, -torch.inf)
    best_texts = scores.topk(min(topk, num_texts), dim=1).indices
    best_images = scores.topk(min(topk, num_images), dim=0).indices
    nothing = torch.zeros_like(together)
    return (
        nothing.scatter(1, best_texts, True) & together,
        nothing.scatter(0, best_images, True) & together,
    )


def two_stage_scores(first_stage: Tensor, candidates: Tensor, second_stage: Tensor) -> Tensor:
    """Scores that rank the candidates first, by the second stage, then the others by the first.

    Args:
        first_stage: (I, T).
        candidates: of one direction, (I, T) bool.
        second_stage: scores of the candidates, (I, T); the others are not read.

    Returns:
        (I, T) float64.
    """
    second_stage = second_stage.double()
    lowest = second_stage[candidates].min()
    others = first_stage.double() - first_stage.double().max() + lowest - 1
    return torch.where(candidates, second_stage, others)
