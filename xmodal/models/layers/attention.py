"""Multi-head attention that takes what a position hands it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from xmodal import functional as F
from xmodal.products import product
from xmodal.structures import CrossTerms, LowRank, select_rows

NO_TERMS = CrossTerms()
CUDNN_TILE = 64  # keys that a step of cuDNN's attention takes
OTHER_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class QKV(NamedTuple):
    """Query, key and value of one token set: what depends on that set alone.

    Attributes:
        query: (B, L, D), None where the tokens serve as context only.
        key: (B, L, D), None where the tokens serve as queries only.
        value: (B, L, D), None with the key.
    """

    query: Tensor | None
    key: Tensor | None
    value: Tensor | None

    def select(self, rows: Tensor) -> 'QKV':
        """Selects batch rows, (K,) int64."""
        return QKV(*(None if x is None else select_rows(x, rows) for x in self))


class Attention(nn.Module):
    """Scaled dot-product attention over H heads.

    Args:
        embed_dims: D.
        num_heads: H.
        dropout: probability on the attention's probabilities.
        output_projection: whether a linear layer follows the heads.
    """

    def __init__(
        self, embed_dims: int, num_heads: int, dropout: float = 0.0, output_projection: bool = True
    ) -> None:
        super().__init__()
        if embed_dims % num_heads:
            raise ValueError(f'num_heads={num_heads} must divide embed_dims={embed_dims}')
        self.num_heads, self.dropout = num_heads, dropout
        self.q_proj = nn.Linear(embed_dims, embed_dims)
        self.k_proj = nn.Linear(embed_dims, embed_dims)
        self.v_proj = nn.Linear(embed_dims, embed_dims)
        self.out_proj = nn.Linear(embed_dims, embed_dims) if output_projection else nn.Identity()

    def project(self, tokens: Tensor, query: bool = True, context: bool = True) -> QKV:
        """Projects (B, L, D) to a query, and to the key and value of a context."""
        return QKV(
            self.q_proj(tokens) if query else None,
            self.k_proj(tokens) if context else None,
            self.v_proj(tokens) if context else None,
        )

    def forward(
        self,
        query: QKV,
        context: QKV,
        context_mask: Tensor | None = None,
        terms: CrossTerms = NO_TERMS,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends from one token set to another.

        A position's additions to tokens are linear, x̄ W^K = x W^K + (features · weight) W^K, so
        that they are added after the projection, which is done once for all pairs of a token set.
        Where the context is the longer side, they are added later still: q · k̄ = q · k + (q W^K
        weightᵀ) · features, and likewise for values. So nothing of width D is made for each pair,
        and pairs that share an image share its keys and values.

        Args:
            query: projections of the Lq query tokens.
            context: projections of the Lk context tokens.
            context_mask: True for real context tokens, (B, Lk) bool.
            terms: additions of a position.
            need_weights: also return the attention's probabilities.

        Returns:
            The attended tokens (B, Lq, D), and the probabilities (B, H, Lq, Lk) or None.
        """
        k, v = context.key, context.value
        # An exported program must not depend on which side is longer.
        if F.is_exporting() or query.query.shape[1] >= context.key.shape[1]:
            k, v = _add(k, terms.key, self.k_proj), _add(v, terms.value, self.v_proj)
            terms = terms._replace(key=None, value=None)
        q = self._split_heads(_add(query.query, terms.query, self.q_proj))
        k, v = self._split_heads(k), self._split_heads(v)
        biases = [terms.bias, None if terms.key is None else self._key_bias(q, terms.key)]
        bias = _attention_bias(context_mask, biases, q)
        if terms.pairs is None and terms.value is None and not need_weights:
            probabilities = None
            dropout = self.dropout if self.training else 0.0
            with _kernels(k):
                attended = scaled_dot_product_attention(q, k, v, bias, dropout)
            attended = _merge_heads(attended)
        else:
            attended, probabilities = self._attend(q, k, v, bias, terms)
        return self.out_proj(attended), probabilities if need_weights else None

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, terms: CrossTerms
    ) -> tuple[Tensor, Tensor]:
        """Attended tokens (B, Lq, D) and probabilities, with what is added to the values."""
        logits = F.shared_product(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        if bias is not None:
            logits = logits + bias
        probabilities = logits.softmax(-1)
        dropped = probabilities
        if self.training and self.dropout:
            # nn.functional.dropout stores its mask as numbers on a CPU
            dropped, _ = torch.native_dropout(probabilities, self.dropout, train=True)
        attended = _merge_heads(F.shared_product(dropped.to(v.dtype), v))
        if terms.value is not None:
            attended = attended + self._attended_value(dropped, terms.value).to(attended.dtype)
        if terms.pairs is not None:
            attended = attended + F.value_term(dropped, *terms.pairs).to(attended.dtype)
        return attended, probabilities

    def _key_bias(self, query: Tensor, key: LowRank) -> Tensor:
        """What ``key`` adds to the logits before they are scaled, (B, H, Lq, Lk)."""
        weight = _project(key, self.k_proj).unflatten(1, (self.num_heads, -1))
        folded = torch.einsum('bhqd,chd->bhqc', query, weight.to(query.dtype))
        logits = folded.flatten(1, 2) @ key.features.to(query.dtype).transpose(1, 2)
        return logits.unflatten(1, (self.num_heads, -1))

    def _attended_value(self, attention: Tensor, value: LowRank) -> Tensor:
        """What ``value`` adds to the attended tokens, (B, Lq, D)."""
        weight = _project(value, self.v_proj).unflatten(1, (self.num_heads, -1))
        attended = attention.flatten(1, 2) @ value.features.to(attention.dtype)
        attended = attended.unflatten(1, (self.num_heads, -1))  # (B, H, Lq, C)
        return torch.einsum('bhqc,chd->bqhd', attended, weight.to(attended.dtype)).flatten(2)

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


def _kernels(key: Tensor) -> AbstractContextManager:
    """The kernels that attention may choose from, for keys (B, H, Lk, d).

    On a GPU in bfloat16 PyTorch takes cuDNN's first. On an H200 it is the fastest for 257 patches,
    but takes 1.5 times as long as PyTorch's own for 20 words or 36 regions, half a tile.
    """
    if key.is_cuda and not F.is_exporting() and key.shape[2] < CUDNN_TILE:
        return sdpa_kernel(OTHER_KERNELS)
    return nullcontext()


def _add(projected: Tensor, addition: LowRank | None, projection: nn.Linear) -> Tensor:
    """``projection(tokens + addition)``, given ``projection(tokens)``."""
    if addition is None:
        return projected
    features = addition.features.to(projected.dtype)
    return product(features, _project(addition, projection).T).add_(projected)


def _project(addition: LowRank, projection: nn.Linear) -> Tensor:
    """The weight of an addition to tokens, after their projection, (C, D)."""
    return addition.weight @ projection.weight.T


def _attention_bias(
    mask: Tensor | None, biases: Sequence[Tensor | None], query: Tensor
) -> Tensor | None:
    """Joins a padding mask and a position's biases into one addition to the scaled logits."""
    given = [bias.to(query.dtype) for bias in biases if bias is not None]
    bias = reduce(torch.add, given) * query.shape[-1] ** -0.5 if given else None
    if mask is None:
        return bias
    blank = torch.zeros((), dtype=query.dtype, device=query.device) if bias is None else bias
    return torch.where(mask[:, None, None, :], blank, torch.finfo(query.dtype).min)


def _merge_heads(heads: Tensor) -> Tensor:
    return heads.transpose(1, 2).flatten(2)
