"""T-EMDE: the trainable sketch of a token set."""

import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.models.layers import move_statistics
from xmodal.models.necks.emde import SketchPooling
from xmodal.registry import MODELS


@MODELS.register_module()
class TEMDE(SketchPooling):
    """Trainable Efficient Manifold Density Estimator (T-EMDE, Sec. 3.2 and Listing 1).

    A token is projected to N·K points in spaces of D dimensions and batch-normalised; its squared
    distance to the centroid of each becomes, by a softmax over K, soft assignments in each of N
    partitions. A set's sketch is their sum over its tokens, L2-normalised partition by partition.
    Padding is left out before the projection: it costs nothing and enters no statistic.

    Where the paper's text and its listing differ, this is the listing. The text has the distance
    without a minus in the softmax, which makes far centroids the likely ones. Parameters have the
    listing's names (``l1``, ``bn1``, ``centroids``, ``temp``), so that weights of its ``Coder``
    load.

    Args:
        embed_dims: width of the tokens.
        partitions: N, the sketch's depth.
        centroids: K, the sketch's width.
        inner_dims: D.
        bn_scope: what gives the batch norm's statistics in training: the tokens of the whole
            'batch', or those of each item, 'per_item', as where a loop calls the coder caption by
            caption.

    Raises:
        ValueError: for an unknown ``bn_scope``.
    """

    def __init__(
        self,
        embed_dims: int,
        partitions: int = 20,
        centroids: int = 8,
        inner_dims: int = 8,
        bn_scope: str = 'batch',
    ) -> None:
        super().__init__(partitions, centroids)
        if bn_scope not in ('batch', 'per_item'):
            raise ValueError(f"TEMDE.bn_scope={bn_scope!r}, expected one of 'batch', 'per_item'")
        self.inner_dims, self.bn_scope = inner_dims, bn_scope
        features = partitions * centroids * inner_dims
        self.l1 = nn.Linear(embed_dims, features)
        self.bn1 = nn.BatchNorm1d(features)
        self.centroids = nn.Parameter(torch.randn(features))
        self.temp = nn.Parameter(torch.ones(1))

    def assign(self, embeddings: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Soft assignments Y of each token, (B, L, N, K); zeros for padding."""
        if attention_mask is None:
            batch, length = embeddings.shape[:2]
            item = torch.arange(batch, device=embeddings.device).repeat_interleave(length)
            return self._assign(embeddings.flatten(0, 1), item).unflatten(0, (batch, length))
        item = attention_mask.nonzero()[:, 0]
        assigned = self._assign(embeddings[attention_mask], item)
        padded = assigned.new_zeros(*attention_mask.shape, self.partitions, self.regions)
        padded[attention_mask] = assigned
        return padded

    def _assign(self, tokens: Tensor, item: Tensor) -> Tensor:
        """Y (T, N, K) of real tokens (T, C), of which each belongs to an item (T,)."""
        projected = self.l1(tokens).float()
        if self.training and self.bn_scope == 'per_item':
            projected = _normalize_items(self.bn1, projected, item)
        else:
            projected = self.bn1(projected)
        distance = F.centroid_distance(
            projected.view(-1, self.partitions, self.regions, self.inner_dims),
            self.centroids.view(self.partitions, self.regions, self.inner_dims),
        )
        return F.soft_assignment(distance, self.temp)


def _normalize_items(norm: nn.BatchNorm1d, tokens: Tensor, item: Tensor) -> Tensor:
    """What a batch norm in training gives when it is called item by item, in their order.

    Its running statistics end up where one update an item leaves them. An item of one token has no
    variance; it becomes zero.

    Args:
        norm: the batch norm.
        tokens: (T, C).
        item: the item of each token, ascending, (T,) int64.

    Returns:
        (T, C).
    """
    _, item, count = item.unique_consecutive(return_inverse=True, return_counts=True)
    sums = tokens.new_zeros(len(count), tokens.shape[1])
    mean = sums.index_add(0, item, tokens) / count[:, None]
    centred = tokens - mean[item]
    squares = sums.index_add(0, item, centred.square())
    scale = (squares / count[:, None] + norm.eps).rsqrt()
    move_statistics(norm, mean, squares / (count[:, None] - 1).clamp(min=1))
    return centred * scale[item] * norm.weight + norm.bias
