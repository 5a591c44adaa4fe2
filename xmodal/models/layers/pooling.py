"""Poolings: from a token set of any length to one vector.

A pooling is built with the width of the tokens and called with ``(embeddings, attention_mask)``;
``out_dims`` is the width of what it returns. A set of no tokens becomes zeros.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from xmodal.errors import ConfigError
from xmodal.registry import MODELS


def build_pooling(config: dict, embed_dims: int, key: str) -> nn.Module:
    """The pooling of a config.

    Args:
        config: without ``embed_dims``.
        embed_dims: D, the width of the tokens.
        key: of the config, for errors.

    Raises:
        ConfigError: when it does not say how wide its vector is.
    """
    pooling = MODELS.build({**config, 'embed_dims': embed_dims})
    if not isinstance(getattr(pooling, 'out_dims', None), int):
        raise ConfigError(
            f"{key}.type='{type(pooling).__name__}' has no out_dims, the width of the vector that "
            'it makes: set self.out_dims in __init__ (docs/plugins.md)'
        )
    return pooling


def pool(pooling: nn.Module, embeddings: Tensor, attention_mask: Tensor | None) -> Tensor:
    """One vector a set, (B, ``out_dims``).

    Raises:
        ValueError: when the pooling makes something else of the sets.
    """
    pooled = pooling(embeddings, attention_mask)
    expected = embeddings.shape[0], pooling.out_dims
    if not isinstance(pooled, Tensor) or pooled.shape != expected:
        found = tuple(pooled.shape) if isinstance(pooled, Tensor) else type(pooled).__name__
        raise ValueError(
            f'{type(pooling).__name__} makes {found} of tokens {tuple(embeddings.shape)}, expected '
            f'{expected}: a vector of out_dims={pooling.out_dims} numbers a set'
        )
    return pooled


class DimensionwisePooling(nn.Module):
    """A pooling that makes each dimension of its vector from that dimension of the tokens.

    Args:
        embed_dims: D, the width of the tokens.

    Shape:
        embeddings: (B, L, D); attention_mask: (B, L) bool, None when all are real. Returns (B, D).
    """

    def __init__(self, embed_dims: int) -> None:
        super().__init__()
        self.out_dims = embed_dims


@MODELS.register_module()
class MeanPooling(DimensionwisePooling):
    """The mean of the real tokens; see :class:`DimensionwisePooling`."""

    def forward(self, embeddings: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Pools each set."""
        if attention_mask is None:
            return embeddings.mean(1)
        total = embeddings.masked_fill(~attention_mask[..., None], 0).sum(1)
        return total / attention_mask.sum(1, keepdim=True).clamp(min=1)


@MODELS.register_module()
class MaxPooling(DimensionwisePooling):
    """The largest value of each dimension among the real tokens.

    See :class:`DimensionwisePooling`.
    """

    def forward(self, embeddings: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Pools each set."""
        if attention_mask is None:
            return embeddings.amax(1)
        largest = embeddings.masked_fill(~attention_mask[..., None], -math.inf).amax(1)
        return largest.masked_fill(~attention_mask.any(1, keepdim=True), 0)


@MODELS.register_module()
class MeanMaxPooling(nn.Module):
    """The mean of the real tokens beside their largest values.

    Args:
        embed_dims: D, the width of the tokens.

    Shape:
        embeddings: (B, L, D); attention_mask: (B, L) bool, None when all are real. Returns
        (B, 2 D).
    """

    def __init__(self, embed_dims: int) -> None:
        super().__init__()
        self.mean, self.max = MeanPooling(embed_dims), MaxPooling(embed_dims)
        self.out_dims = 2 * embed_dims

    def forward(self, embeddings: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Pools each set."""
        return torch.cat([pool(embeddings, attention_mask) for pool in (self.mean, self.max)], 1)


@MODELS.register_module()
class GPOPooling(nn.Module):
    """Generalized pooling operator (VSE∞, Chen et al., CVPR 2021, Sec. 4).

    Each dimension is sorted over the tokens, largest first, and the k-th largest values are summed
    with weights θ_k that a bidirectional GRU computes from the encoded ranks 1…L. The weights
    depend on the number of tokens alone, so that they are computed once a length.

    Args:
        embed_dims: D, the width of the tokens.
        position_dims: width of the sine encoding of a rank.
        hidden_dims: width of the GRU.
        temperature: of the softmax over the ranks; 0.1 in the authors' code.

    Shape:
        embeddings: (B, L, D); attention_mask: (B, L) bool, None when all are real. Returns (B, D).
    """

    def __init__(
        self,
        embed_dims: int,
        position_dims: int = 32,
        hidden_dims: int = 32,
        temperature: float = 0.1,
    ) -> None:
        super().__init__()
        if position_dims % 2:
            raise ValueError(f'GPOPooling.position_dims={position_dims}, expected an even number')
        self.out_dims = embed_dims
        self.position_dims, self.temperature = position_dims, temperature
        self.gru = nn.GRU(position_dims, hidden_dims, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(hidden_dims, 1, bias=False)

    def weights(self, lengths: Tensor) -> Tensor:
        """θ for sets of each of some lengths, (U,) at least 1: (U, max length), 0 past its end."""
        ranks = torch.arange(int(lengths.max()), device=lengths.device)
        encoded = _encode_ranks(ranks, self.position_dims).expand(len(lengths), -1, -1)
        packed = pack_padded_sequence(
            encoded, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        hidden, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        forward, backward = hidden.chunk(2, -1)
        scores = self.linear((forward + backward) / 2)[..., 0].float()
        past = ranks >= lengths[:, None]
        return (scores / self.temperature).masked_fill(past, -math.inf).softmax(1)

    def forward(self, embeddings: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Pools each set."""
        batch, longest = embeddings.shape[:2]
        if attention_mask is None:
            attention_mask = embeddings.new_ones(batch, longest, dtype=torch.bool)
        counts = attention_mask.sum(1)
        lengths, which = counts.clamp(min=1).unique(return_inverse=True)
        weights = self.weights(lengths)[which]
        # Padding comes last, whatever its position was.
        ranked = embeddings.masked_fill(~attention_mask[..., None], -math.inf)
        ranked = ranked.sort(dim=1, descending=True).values[:, : weights.shape[1]]
        past = torch.arange(weights.shape[1], device=counts.device) >= counts[:, None]
        ranked = ranked.masked_fill(past[..., None], 0)
        return (weights[:, None].to(ranked.dtype) @ ranked)[:, 0]


def _encode_ranks(ranks: Tensor, dims: int) -> Tensor:
    """Sines and cosines of each rank at ``dims`` / 2 frequencies, interleaved, (L, dims)."""
    exponent = torch.arange(0, dims, 2, device=ranks.device) / dims
    angle = ranks[:, None] * 10000.0**-exponent
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
