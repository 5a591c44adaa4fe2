"""Keys of a contrastive loss: embeddings to compare with, and the pairs they belong to."""

from typing import NamedTuple

import torch
from mmengine.dist import all_gather
from torch import Tensor

from xmodal.structures.batch import Identities

EMPTY = -1  # the image id of an entry that nothing was written to yet


class Keys(NamedTuple):
    """Embeddings of K pairs, outside the graph.

    Attributes:
        image_embeddings: normalised, (K, d).
        text_embeddings: normalised, (K, d).
        image_ids: (K,) int64; ``EMPTY`` marks an entry that nothing was written to yet.
        text_ids: (K,) int64.
    """

    image_embeddings: Tensor
    text_embeddings: Tensor
    image_ids: Tensor
    text_ids: Tensor

    @property
    def identities(self) -> Identities:
        """Of the K pairs."""
        return Identities(self.image_ids, self.text_ids)

    @property
    def is_empty(self) -> Tensor:
        """Entries that nothing was written to yet, (K,) bool."""
        return self.image_ids == EMPTY

    def gather(self) -> 'Keys':
        """The keys of all ranks, rank after rank; all ranks have batches of one size."""
        return Keys(*(torch.cat(all_gather(x.contiguous())) for x in self))

    def join(self, other: 'Keys') -> 'Keys':
        """These keys followed by ``other``."""
        return Keys(*(torch.cat(pair) for pair in zip(self, other, strict=True)))
