"""One modality after its encoder, and both after fusion."""

from typing import NamedTuple

import torch
from torch import Tensor

from xmodal.structures.relation import Relation
from xmodal.structures.tokens import Tokens

ROUNDING = 0.02  # of the length of an embedding, in half precision


class Encoded(NamedTuple):
    """One modality after its encoder.

    Attributes:
        tokens: the token set, D wide; None where embeddings alone were asked for, or are all that
            the model gives.
        embedding: the L2-normalised projection of [CLS], or of a pooling of the tokens, (B, d);
            None in a model that compares tokens instead.
    """

    tokens: Tokens | None
    embedding: Tensor | None

    def select(self, rows: Tensor) -> 'Encoded':
        """Selects batch rows, (K,) int64."""
        tokens = None if self.tokens is None else self.tokens.select(rows)
        embedding = None if self.embedding is None else self.embedding[rows]
        return Encoded(tokens, embedding)

    @classmethod
    def join(cls, parts: list['Encoded']) -> 'Encoded':
        """Several batches as one, whose tokens are padded to the longest."""
        tokens, embeddings = zip(*parts, strict=True)
        joined = None if tokens[0] is None else Tokens.join(list(tokens))
        embedding = None if embeddings[0] is None else torch.cat(embeddings)
        return cls(joined, embedding)


class CrossAttentions(NamedTuple):
    """Attention probabilities of one fusion layer, in the graph.

    Attributes:
        text_to_image: words look at the image, (B, heads, 1 + N, 1 + M).
        image_to_text: patches look at the text, (B, heads, 1 + M, 1 + N); None in a layer that
            has no image stream.
    """

    text_to_image: Tensor
    image_to_text: Tensor | None


class Fused(NamedTuple):
    """Both modalities after fusion.

    Attributes:
        image_tokens: (B, 1 + M, D); None when the caller did not ask for the image stream.
        text_tokens: (B, 1 + N, D), or the words that the caller asked for.
        attentions: one entry a layer, or None when not asked for.
        relation: what the position relates words and patches by, or None.
    """

    image_tokens: Tensor | None
    text_tokens: Tensor
    attentions: list[CrossAttentions] | None = None
    relation: Relation | None = None


def require_unit_length(embedding: Tensor | None, model: object) -> None:
    """Checks that embeddings are normalised, so that their products are cosines.

    Args:
        embedding: (B, D), or None.
        model: that made them.

    Raises:
        ValueError: names the model and the lengths.
    """
    if embedding is None:
        return
    lengths = embedding.float().norm(dim=-1)
    if not lengths.isfinite().all():
        raise ValueError(
            f'{type(model).__name__} makes embeddings that are not finite: its weights, or its '
            'input, hold NaN or inf'
        )
    is_off = ((lengths - 1).abs() > ROUNDING) & (lengths > 0)  # a set of no tokens is zero
    if is_off.any():
        raise ValueError(
            f'{type(model).__name__} makes embeddings of length {lengths.min():.3g} to '
            f'{lengths.max():.3g}, expected 1: their products are taken for cosines. Give '
            'Encoded(tokens, torch.nn.functional.normalize(embedding, dim=-1))'
        )
