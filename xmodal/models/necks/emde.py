"""Sketches of token sets, and the static EMDE that T-EMDE makes trainable."""

import torch
from mmengine.dist import broadcast
from torch import Tensor, nn
from torch.nn.functional import one_hot

from xmodal import functional as F
from xmodal.registry import MODELS


class SketchPooling(nn.Module):
    """A histogram of a token set over the K regions of each of N partitions of its space.

    A subclass says which regions a token belongs to. A sketch is the sum of that over the tokens,
    so that the sketch of a union of sets is the sum of their sketches; ``normalize`` comes after
    all sums. Time and memory are linear in the number of tokens.

    Args:
        partitions: N.
        regions: K.

    Shape:
        embeddings: (B, L, D); attention_mask: (B, L) bool, None when all are real.
        Returns (B, N·K); a set of no tokens becomes zeros.
    """

    def __init__(self, partitions: int, regions: int) -> None:
        super().__init__()
        self.partitions, self.regions = partitions, regions
        self.out_dims = partitions * regions

    def assign(self, embeddings: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The share of each token in each region, (B, L, N, K); anything for padding."""
        raise NotImplementedError

    def sketch(self, embeddings: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The sum of the tokens' shares, not normalised, (B, N, K)."""
        return F.sketch(self.assign(embeddings, attention_mask), attention_mask)

    def normalize(self, sketch: Tensor) -> Tensor:
        """A sketch, or a sum of sketches, (B, N, K), as N parts of norm 1 in a row, (B, N·K)."""
        return F.l2_normalize(sketch).flatten(1)

    def forward(self, embeddings: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Pools each set."""
        return self.normalize(self.sketch(embeddings, attention_mask))


@MODELS.register_module()
class EMDE(SketchPooling):
    """The static sketch: density-dependent hashing (EMDE, Dąbrowski et al., arXiv 2006.01894).

    In each partition ``bits`` random hyperplanes cut the space into K = 2^bits regions. A
    hyperplane lies where a share of the data, drawn at random, is below it, so that regions are
    small where tokens are dense. The first batch of training places the hyperplanes, or :meth:`fit`
    does, and checkpoints carry them. Nothing is trained and no gradient passes: encoders that only
    this reads keep the weights they have, and tokens of others drift away from the hyperplanes.

    Args:
        embed_dims: width of the tokens.
        partitions: N.
        bits: hyperplanes a partition.
        seed: of the random directions and shares.
    """

    def __init__(
        self,
        embed_dims: int,
        partitions: int = 20,
        bits: int = 3,
        seed: int = 0,
    ) -> None:
        super().__init__(partitions, 2**bits)
        self.bits = bits
        generator = torch.Generator().manual_seed(seed)
        hyperplanes = partitions * bits
        directions = torch.randn(embed_dims, hyperplanes, generator=generator)
        self.register_buffer('directions', directions)
        self.register_buffer('shares', torch.rand(hyperplanes, generator=generator))
        self.register_buffer('thresholds', torch.full((hyperplanes,), torch.nan))

    @torch.no_grad()
    def fit(self, embeddings: Tensor, attention_mask: Tensor | None = None) -> None:
        """Places every hyperplane at its quantile of the real tokens.

        Args:
            embeddings: (…, D), as those to be sketched.
            attention_mask: True for real tokens, (…) bool, None for all.

        Raises:
            ValueError: when there are no tokens, or values that are not finite.
        """
        if attention_mask is None:
            tokens = embeddings.flatten(0, -2)
        else:
            tokens = embeddings[attention_mask]
        if not len(tokens) or not tokens.isfinite().all():
            raise ValueError(
                f'EMDE.fit got {len(tokens)} real tokens of shape {tuple(embeddings.shape)}, '
                'expected at least one and finite values alone'
            )
        for hyperplane, share in enumerate(self.shares.tolist()):
            positions = self._positions(tokens, hyperplane).sort().values
            below = int(share * (len(positions) - 1))
            # Between two tokens rather than on one, where rounding would decide its side.
            self.thresholds[hyperplane] = positions[below : below + 2].mean()
        broadcast(self.thresholds)  # those of the first rank, in all

    @torch.no_grad()
    def assign(self, embeddings: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """1 for the region each token lies in, (B, L, N, K).

        Raises:
            RuntimeError: when it is evaluated before it is fitted.
        """
        if self.thresholds.isnan().any():
            if not self.training:
                raise RuntimeError(
                    'EMDE is not fitted: train, call fit(embeddings, attention_mask) with tokens '
                    'of the training split, or load a checkpoint of a fitted one'
                )
            self.fit(embeddings, attention_mask)
        above = self._positions(embeddings, slice(None)) > self.thresholds
        powers = 2 ** torch.arange(self.bits, device=above.device)
        region = (above.unflatten(-1, (self.partitions, self.bits)) * powers).sum(-1)
        return one_hot(region, self.regions).to(self.directions.dtype)

    def _positions(self, tokens: Tensor, hyperplanes: int | slice) -> Tensor:
        """Projections of tokens (…, D) on the directions of some hyperplanes, in float32."""
        with torch.autocast(tokens.device.type, enabled=False):
            return tokens.to(self.directions) @ self.directions[:, hyperplanes]
