"""The dynamic dictionaries O_x, O_y: momentum vectors of earlier batches, with their identities."""

from typing import NamedTuple

import torch
from mmengine.dist import all_gather, is_distributed
from torch import Tensor, nn

EMPTY = -1


class Keys(NamedTuple):
    """Momentum vectors to contrast with, and what they are of.

    Attributes:
        image_embeddings: normalised, (K, d).
        text_embeddings: normalised, (K, d).
        image_ids: (K,) int64; -1 marks a place that nothing was written to yet.
        text_ids: (K,) int64.
    """

    image_embeddings: Tensor
    text_embeddings: Tensor
    image_ids: Tensor
    text_ids: Tensor

    def gather(self) -> 'Keys':
        """The keys of all ranks, rank after rank; all ranks have batches of one size."""
        if not is_distributed():
            return self
        return Keys(*(torch.cat(all_gather(x.contiguous())) for x in self))

    def join(self, other: 'Keys') -> 'Keys':
        """These keys followed by ``other``."""
        return Keys(*(torch.cat(pair) for pair in zip(self, other, strict=True)))

    def same(self, image_ids: Tensor, text_ids: Tensor) -> Tensor:
        """Which keys are of the same image or the same text as each sample, (B, K) bool."""
        return (image_ids[:, None] == self.image_ids) | (text_ids[:, None] == self.text_ids)


class MomentumQueue(nn.Module):
    """The last K pairs of momentum vectors.

    Its length need not be a multiple of the batch: writing wraps around. Every rank writes the
    gathered keys of all, so that all hold the same queue.

    Args:
        length: K; 0 leaves the batch itself as the only source of negatives.
        dims: d, width of a vector.
    """

    def __init__(self, length: int, dims: int) -> None:
        super().__init__()
        self.length = length
        self.register_buffer('image_embeddings', torch.zeros(length, dims))
        self.register_buffer('text_embeddings', torch.zeros(length, dims))
        self.register_buffer('image_ids', torch.full((length,), EMPTY))
        self.register_buffer('text_ids', torch.full((length,), EMPTY))
        self.register_buffer('pointer', torch.zeros((), dtype=torch.int64))

    def keys(self) -> Keys:
        """A copy of all K entries, safe from later writing."""
        return Keys(*(getattr(self, name).clone() for name in Keys._fields))

    @torch.no_grad()
    def write(self, keys: Keys) -> None:
        """Replaces the oldest entries by ``keys``; of more than K, the last K stay."""
        if not self.length:
            return
        count = len(keys.image_ids)
        # A vector that is not finite (of a step that will be skipped) must not stay: its place is
        # marked as empty.
        finite = (keys.image_embeddings + keys.text_embeddings).isfinite().all(1)
        keys = keys._replace(
            image_ids=torch.where(finite, keys.image_ids, EMPTY),
            text_ids=torch.where(finite, keys.text_ids, EMPTY),
            image_embeddings=keys.image_embeddings.nan_to_num(0, 0, 0),
            text_embeddings=keys.text_embeddings.nan_to_num(0, 0, 0),
        )
        first = max(0, count - self.length)
        offsets = torch.arange(first, count, device=self.pointer.device)
        places = (self.pointer + offsets) % self.length
        for name, values in keys._asdict().items():
            buffer = getattr(self, name)
            buffer[places] = values[first:].to(buffer.dtype)
        self.pointer.copy_((self.pointer + count) % self.length)
