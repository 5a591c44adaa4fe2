"""The second ranking of a query: its best images, by the fusion encoder."""

import logging
from collections.abc import Sequence
from math import inf
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor

from xmodal.datasets.image_file import BrokenImageError
from xmodal.search.query import Hit, Query
from xmodal.search.sources import Entry
from xmodal.structures import Encoded

_MATCHED = 64  # images that are compared with a text at once


def rerank_hits(inferencer: Any, query: Query, hits: list[Hit], count: int) -> list[Hit]:
    """The first ``count`` in the order of their matching scores, then the others.

    Args:
        inferencer: of a model with a fusion encoder.
        query: with a text.
        hits: best first.
        count: how many are ranked anew.

    Raises:
        ValueError: as :func:`matching_scores`.
    """
    entries = [hit.image.entry for hit in hits[:count]]
    scores = matching_scores(inferencer, query, entries)
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
def matching_scores(inferencer: Any, query: Query, entries: Sequence[Entry]) -> list[float | None]:
    """How well a query matches images by the fusion encoder, as the retrieval test ranks.

    The score of the text that is not looked for is subtracted, as its vector is in the search.

    Args:
        inferencer: of a model with a fusion encoder.
        query: its texts are compared; its image has no say.
        entries: the images.

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
    # At once, as the search does: a warning of unknown words that is the same is shown once.
    encoded = inferencer.encode_texts([text for text in (query.sentence, query.without) if text])
    texts = [encoded.select(row) for row in torch.arange(len(encoded.embedding)).split(1)]
    parts = [entries[i : i + _MATCHED] for i in range(0, len(entries), _MATCHED)]
    return [score for part in parts for score in _match(inferencer, texts, part)]


def _match(inferencer: Any, texts: list[Encoded], entries: Sequence[Entry]) -> list[float | None]:
    """The scores of images with the first text, less those with a second one."""
    try:
        image = inferencer.encode_images([entry.read() for entry in entries])
    except BrokenImageError:  # it takes no other image's score away
        if len(entries) == 1:
            return [None]
        return [_match(inferencer, texts, [entry])[0] for entry in entries]
    scores, *unwanted = (_match_text(inferencer, text, image) for text in texts)
    return (scores - sum(unwanted)).float().cpu().tolist()


def _match_text(inferencer: Any, text: Encoded, image: Encoded) -> Tensor:
    """The scores of B images with a text, (B,), of the kind that the model's test ranks by."""
    model = inferencer.model
    rows = torch.arange(len(image.embedding), device=image.embedding.device)
    scores = model.match(image.tokens, text.tokens, torch.stack([rows, torch.zeros_like(rows)], 1))
    if _scorer(inferencer.config).get('add_similarity'):
        scores = scores + model.contrastive_head.scale((image.embedding @ text.embedding.T)[:, 0])
    return scores


def _scorer(config: Any) -> dict:
    """The scorer of the retrieval test, which may be one of several tests; empty for none."""
    test = config.get('test_cfg') or {}
    tests = test, *test.get('loops', {}).values()
    return next((one['scorer'] for one in tests if one and 'scorer' in one), {})
