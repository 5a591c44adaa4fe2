"""The tokens of one modality inside the fusion encoder."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from torch import Tensor

from xmodal.models.layers import QKV, Attention
from xmodal.structures import Tokens


class Stream:
    """The tokens of one modality on their way through the layers.

    Before its first cross-attention a stream has a row for each *distinct* image or text of the
    call; ``rows`` says which row each pair takes. After it, a stream has a row for each pair.

    Attributes:
        kept: by attention, the embeddings that it projected last, and the result; None outside of
            :func:`keep_projections`.
    """

    kept: ClassVar[dict[Attention, tuple[Tensor, QKV]] | None] = None

    def __init__(self, tokens: Tokens, rows: Tensor | None) -> None:
        self.tokens, self.rows = tokens, rows

    def update(self, embeddings: Tensor) -> None:
        """Replaces the embeddings; the rows stay."""
        self.tokens = self.tokens._replace(embeddings=embeddings)

    def project(self, attention: Attention, query: bool) -> QKV:
        """The projections of the tokens, which may be kept from an earlier call."""
        embeddings, kept = self.tokens.embeddings, Stream.kept
        if kept is None:
            return attention.project(embeddings, query=query)
        if attention not in kept or kept[attention][0] is not embeddings:
            kept[attention] = embeddings, attention.project(embeddings, query=query)
        return kept[attention][1]

    def pair(self, projected: QKV) -> QKV:
        """``projected`` with a row for each pair."""
        return projected if self.rows is None else projected.select(self.rows)

    def paired_tokens(self) -> Tokens:
        """The tokens with a row for each pair."""
        return self.tokens if self.rows is None else self.tokens.select(self.rows)

    def paired_mask(self) -> Tensor | None:
        """The attention mask with a row for each pair."""
        mask = self.tokens.attention_mask
        return mask if mask is None or self.rows is None else mask[self.rows]

    def set_paired(self, tokens: Tokens) -> None:
        """Replaces the tokens by those after cross-attention, a row for each pair."""
        self.tokens, self.rows = tokens, None


@contextmanager
def keep_projections() -> Iterator[None]:
    """Inside, an image that is fused again is not projected again, while it is the same tensor.

    For callers that fuse an image with texts in turn, without gradients, where its tokens pass the
    layers unchanged (``streams='text'``). Else nothing is saved.
    """
    Stream.kept = {}
    try:
        yield
    finally:
        Stream.kept = None
