"""The tokens of one modality inside the fusion encoder."""

from torch import Tensor

from xmodal.models.layers import QKV
from xmodal.structures import Tokens


class Stream:
    """The tokens of one modality on their way through the layers.

    Before its first cross-attention a stream has a row for each *distinct* image or text of the
    call; ``rows`` says which row each pair takes. After it, a stream has a row for each pair.
    """

    def __init__(self, tokens: Tokens, rows: Tensor | None) -> None:
        self.tokens, self.rows = tokens, rows

    def update(self, embeddings: Tensor) -> None:
        """Replaces the embeddings; the rows stay."""
        self.tokens = self.tokens._replace(embeddings=embeddings)

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
