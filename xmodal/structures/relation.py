"""What a position hands to the fusion layers."""

from typing import NamedTuple

from torch import Tensor

from xmodal.structures.tokens import select_tokens


class Relation(NamedTuple):
    """What relates the words and the patches of each pair, for all fusion layers.

    A position sets the fields that its :meth:`cross_terms` needs.

    Attributes:
        similarity: S_G of Eq. 3 of ACE-RPE, (B, 1 + M, 1 + N, G).
        distance: P of Eq. 7, (B, 1 + M, 1 + N, G); +inf where no anchor reaches the pair.
        features: P with a finite value everywhere, (B, 1 + M, 1 + N, C), C being G or 2G.
        image_mean: mean of ``features`` over the real words, (B, 1 + M, C).
        text_mean: mean of ``features`` over the patches, (B, 1 + N, C).
        places: centres (y, x) of the patches, (B, 1 + M, 2), or of regions, (B, R, 2).
    """

    similarity: Tensor | None = None
    distance: Tensor | None = None
    features: Tensor | None = None
    image_mean: Tensor | None = None
    text_mean: Tensor | None = None
    places: Tensor | None = None

    def select(self, rows: slice, patches: int, words: int) -> 'Relation':
        """The relation of some of the pairs, without the tokens that pad theirs."""
        pairs = (None if x is None else x[rows, :patches, :words] for x in self[:3])
        lengths = (patches, words, patches)
        tokens = (
            None if x is None else x[rows, :length]
            for x, length in zip(self[3:], lengths, strict=True)
        )
        return Relation(*pairs, *tokens)


class LowRank(NamedTuple):
    """An addition to tokens, kept as factors: ``features`` (…, C) @ ``weight`` (C, D)."""

    features: Tensor
    weight: Tensor


class CrossTerms(NamedTuple):
    """What a position adds to one cross-attention of Lq queries over Lk keys.

    Attributes:
        query: added to the query tokens before W^Q, features (B, Lq, C).
        key: added to the context tokens before W^K, features (B, Lk, C).
        value: added to the context tokens before W^V, features (B, Lk, C).
        pairs: added to the values, pair by pair, features (B, Lq, Lk, C).
        bias: added to the logits before they are scaled, (B, 1 or heads, Lq, Lk).
    """

    query: LowRank | None = None
    key: LowRank | None = None
    value: LowRank | None = None
    pairs: LowRank | None = None
    bias: Tensor | None = None

    def select_queries(self, queries: Tensor) -> 'CrossTerms':
        """What is added for some of the queries, (B, W) int64."""
        query, pairs = (
            term and term._replace(features=select_tokens(term.features, queries))
            for term in (self.query, self.pairs)
        )
        bias = None if self.bias is None else select_biases(self.bias, queries)
        return self._replace(query=query, pairs=pairs, bias=bias)


def select_biases(bias: Tensor, queries: Tensor) -> Tensor:
    """Rows of a bias (B or 1, heads or 1, Lq, Lk), of the queries (B, W): (B, …, W, Lk)."""
    bias = bias.transpose(1, 2).expand(len(queries), -1, -1, -1)
    return select_tokens(bias, queries).transpose(1, 2)
