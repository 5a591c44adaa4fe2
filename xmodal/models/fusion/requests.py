"""What several objectives want fused, in one pass of the fusion encoder."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from xmodal.structures import Fused, Tokens


class FusionRequest(NamedTuple):
    """Pairs of images and texts to fuse, and the words that are read of them.

    Attributes:
        image: distinct images. Requests that hand in the same tokens share them.
        text: distinct texts.
        pairs: rows of image and text, (P, 2) int64.
        words: the words of each pair that are needed, (P, W) int64.
        drawn: what the objective drew at random and needs for its loss.
    """

    image: Tokens
    text: Tokens
    pairs: Tensor
    words: Tensor
    drawn: object = None


def fuse_requests(backbone: nn.Module, requests: Sequence[FusionRequest]) -> list[Fused]:
    """Fuses the pairs of all requests as one batch; large products take less time than several.

    Args:
        backbone: with the method ``fuse``.
        requests: at least one.

    Returns:
        A result a request, as if it had been fused alone, without image tokens.
    """
    images, image_offsets = _distinct([request.image for request in requests])
    texts, text_offsets = _distinct([request.text for request in requests])
    pairs = [
        torch.stack([request.pairs[:, 0] + image, request.pairs[:, 1] + text], 1)
        for request, image, text in zip(requests, image_offsets, text_offsets, strict=True)
    ]
    widest = max(request.words.shape[1] for request in requests)
    # Where another request reads more words of a pair, [CLS] is computed in their place.
    words = [pad(request.words, (0, widest - request.words.shape[1])) for request in requests]
    fused = backbone.fuse(images, texts, torch.cat(pairs), need_image=False, words=torch.cat(words))
    results, start = [], 0
    for request in requests:
        rows = slice(start, start := start + len(request.pairs))
        lengths = (tokens.embeddings.shape[1] for tokens in (request.image, request.text))
        relation = fused.relation and fused.relation.select(rows, *lengths)
        tokens = fused.text_tokens[rows, : request.words.shape[1]]
        results.append(Fused(None, tokens, None, relation))
    return results


def _distinct(parts: list[Tokens]) -> tuple[Tokens, list[int]]:
    """The token sets as one batch, each once, and the row where each part begins."""
    distinct: list[Tokens] = []
    starts: list[int] = []
    offsets = []
    for part in parts:
        known = [index for index, other in enumerate(distinct) if other is part]
        if not known:
            starts.append(sum(len(other.embeddings) for other in distinct))
            distinct.append(part)
        offsets.append(starts[known[0] if known else -1])
    return distinct[0] if len(distinct) == 1 else Tokens.join(distinct), offsets
