"""The dynamic dictionaries O_x, O_y: momentum embeddings of earlier batches."""

import torch
from torch import Tensor, nn

from xmodal.structures import EMPTY, Keys


class MomentumQueue(nn.Module):
    """The last K pairs of momentum embeddings, with their identities.

    Its length need not be a multiple of the batch: writing wraps around. Every rank writes the
    gathered keys of all, so that all have the same queue.

    Args:
        length: K; 0 leaves the batch itself as the only source of negatives.
        dims: d, width of an embedding.
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
        # An embedding that is not finite (of a step that will be skipped) must not stay: its entry
        # is marked as empty.
        finite = (keys.image_embeddings + keys.text_embeddings).isfinite().all(1)
        keys = keys._replace(
            image_ids=torch.where(finite, keys.image_ids, EMPTY),
            text_ids=torch.where(finite, keys.text_ids, EMPTY),
            image_embeddings=keys.image_embeddings.nan_to_num(0, 0, 0),
            text_embeddings=keys.text_embeddings.nan_to_num(0, 0, 0),
        )
        first = max(0, count - self.length)
        offsets = torch.arange(first, count, device=self.pointer.device)
        rows = (self.pointer + offsets) % self.length
        for name, values in keys._asdict().items():
            buffer: Tensor = getattr(self, name)
            buffer[rows] = values[first:].to(buffer.dtype)
        self.pointer.copy_((self.pointer + count) % self.length)
