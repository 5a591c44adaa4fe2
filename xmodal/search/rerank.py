"""The second ranking of a query: its best images, by the fusion encoder."""

import logging
from collections.abc import Sequence
from math import inf
from typing import Any

import torch
from mmengine.logging import print_log

from xmodal.datasets.image_file import BrokenImageError
from xmodal.search.query import Hit
from xmodal.search.sources import Entry

_MATCHED = 64  # images that are compared with a text at once


def rerank_hits(
    inferencer: Any, text: str, hits: list[Hit], count: int, add_similarity: bool
) -> list[Hit]:
    """The first ``count`` in the order of their matching scores, then the others.

    Args:
        inferencer: of a model with a fusion encoder.
        text: the query.
        hits: best first.
        count: how many are ranked anew.
        add_similarity: see :func:`matching_scores`.

    Raises:
        ValueError: as :func:`matching_scores`.
    """
    entries = [hit.image.entry for hit in hits[:count]]
    scores = matching_scores(inferencer, text, entries, add_similarity)
    if entries and all(score is None for score in scores):
        # The same for every query: MMEngine shows equal warnings once.
        print_log(
            'none of the images to re-rank can be read, and they keep their order: an index has '
            'paths as they were given, and relative ones need the folder in which it was made',
            'current',
            logging.WARNING,
        )
    scored = [hit._replace(reranked=score) for hit, score in zip(hits, scores, strict=False)]
    # Those without a score, whose file is gone or broken by now, follow in their order.
    scored.sort(key=lambda hit: inf if hit.reranked is None else -hit.reranked)
    return scored + hits[count:]


@torch.no_grad()
def matching_scores(
    inferencer: Any, text: str, entries: Sequence[Entry], add_similarity: bool
) -> list[float | None]:
    """How well a text matches images by the fusion encoder, as the retrieval test ranks.

    Args:
        inferencer: of a model with a fusion encoder.
        text: the query.
        entries: the images.
        add_similarity: adds the ITC logit: the test's ``scorer.add_similarity``.

    Returns:
        A score for each image; None where its file is gone or broken by now.

    Raises:
        ValueError: when the model has no ITM head, or there are regions in place of images.
    """
    inferencer.model.require_matching_head()
    if any(entry.is_regions for entry in entries):
        raise ValueError(
            f'{entries[0].file} is a region store and has no images: search without re-ranking'
        )
    parts = [entries[i : i + _MATCHED] for i in range(0, len(entries), _MATCHED)]
    return [score for part in parts for score in _match(inferencer, text, part, add_similarity)]


def _match(
    inferencer: Any, text: str, entries: Sequence[Entry], add_similarity: bool
) -> list[float | None]:
    try:
        image, words = inferencer.encode([entry.read() for entry in entries], [text])
    except BrokenImageError:  # it takes no other image's score away
        if len(entries) == 1:
            return [None]
        return [_match(inferencer, text, [entry], add_similarity)[0] for entry in entries]
    model = inferencer.model
    pairs = torch.tensor([[row, 0] for row in range(len(entries))], device=image.embedding.device)
    scores = model.match(image.tokens, words.tokens, pairs)
    if add_similarity:
        scores = scores + model.contrastive_head.scale((image.embedding @ words.embedding.T)[:, 0])
    return scores.float().cpu().tolist()
