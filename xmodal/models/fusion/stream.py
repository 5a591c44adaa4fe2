"""The tokens of one modality inside the fusion encoder."""

from typing import NamedTuple

from torch import Tensor

from xmodal.models.layers import QKV
from xmodal.structures import Tokens


class Stream(NamedTuple):
    """The tokens of one modality on their way through the layers.

    Before its first cross-attention a stream has a row for each *distinct* image or text of the
    call. After it, a stream has a row for each pair.

    Attributes:
        tokens: of the images or texts.
        rows: the row that each pair takes, (P,) int64; None where each pair has its own.
    """

    tokens: Tokens
    rows: Tensor | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of pairs and of tokens."""
        rows, length, _ = self.tokens.embeddings.shape
        return rows if self.rows is None else len(self.rows), length

    def with_embeddings(self, embeddings: Tensor) -> 'Stream':
        """The stream with other embeddings of the same tokens."""
        return Stream(self.tokens.with_embeddings(embeddings), self.rows)

    def paired(self) -> 'Stream':
        """The stream with a row for each pair."""
        return self if self.rows is None else Stream(self.tokens.select(self.rows))

    def pair(self, projected: QKV) -> QKV:
        """``projected`` with a row for each pair."""
        return projected if self.rows is None else projected.select(self.rows)

    def paired_mask(self) -> Tensor | None:
        """The attention mask with a row for each pair."""
        mask = self.tokens.attention_mask
        return mask if mask is None or self.rows is None else mask[self.rows]
