"""From the similarity vectors of a pair to one: SAF and SGR.

A pair has one vector a word and, where there is a global pooling, the global one before them: its
nodes, (…, N, S).
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from xmodal import functional as F
from xmodal.models.layers import move_statistics, xavier_linear
from xmodal.products import product
from xmodal.registry import MODELS

# Nodes that are reasoned upon at once in evaluation on a CPU: products read them from its cache.
CPU_NODES = 1536


class GraphStep(nn.Module):
    """One step of reasoning: X' = ReLU(W_r (E X) + b), E = softmax(Q Kᵀ), not scaled.

    Q Kᵀ = X (W_q'ᵀ W_k') Xᵀ + …: of queries and keys only one bilinear map is left, and a bias of
    the keys adds the same to a whole row, which the softmax takes away; so keys have none.

    Args:
        dim: S.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.query = xavier_linear(dim, dim)
        self.key = xavier_linear(dim, dim, bias=False)
        self.linear = xavier_linear(dim, dim)

    def edge_map(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Weight (S, S) and bias (S,) of x ↦ W_kᵀ (W_q x + b_q)."""
        weight = self.key.weight.T @ self.query.weight
        return weight.to(dtype), (self.query.bias @ self.key.weight).to(dtype)

    def forward(self, nodes: Tensor, edge_map: tuple[Tensor, Tensor], targets: int) -> Tensor:
        """The first ``targets`` nodes after the step, (…, targets, S)."""
        queries = product(nodes[..., :targets, :], *edge_map)
        edges = (queries @ nodes.mT).float()
        edges = edges.softmax(-1) if self.training or not edges.is_cpu else _softmax(edges)
        return product(edges.to(nodes.dtype) @ nodes, self.linear.weight, self.linear.bias).relu_()


def _softmax(x: Tensor) -> Tensor:
    """Over the last dimension; PyTorch's takes five times as long for fewer than 16 on a CPU."""
    x = (x - x.amax(-1, keepdim=True)).exp_()
    return x / x.sum(-1, keepdim=True)


@MODELS.register_module()
class SGR(nn.Module):
    """Similarity graph reasoning (Diao et al., AAAI 2021, Sec. 3.3): node 0 after some steps.

    Node 0 is the global one. Without a global pooling it is the first word, <start>, as in the
    reference. The last step is computed for node 0 alone.

    Args:
        dim: S, width of a node.
        steps: number of steps, each with its own weights.
    """

    separable = True  # a pair's result depends on no other pair

    def __init__(self, dim: int, steps: int = 3) -> None:
        super().__init__()
        self.steps = nn.ModuleList(GraphStep(dim) for _ in range(steps))

    def precompute(self, dtype: torch.dtype) -> list[tuple[Tensor, Tensor]]:
        """What depends on the weights alone."""
        return [step.edge_map(dtype) for step in self.steps]

    def readers(self, output: nn.Linear) -> list[nn.Linear]:
        """The layers that read nodes: those of the first step, which gives other vectors."""
        return [self.steps[0].query, self.steps[0].key, self.steps[0].linear]

    def forward(self, nodes: Tensor, weights: list[tuple[Tensor, Tensor]]) -> Tensor:
        """(…, N, S) to (…, S)."""
        # In training, gradients of weights would be sums of parts, and rounded in another way.
        if self.training or not nodes.is_cpu:
            return self._reason(nodes, weights)
        pairs = nodes.flatten(0, -3).split(max(1, CPU_NODES // nodes.shape[-2]))
        vectors = torch.cat([self._reason(part, weights) for part in pairs])
        return vectors.unflatten(0, nodes.shape[:-2])

    def _reason(self, nodes: Tensor, weights: list[tuple[Tensor, Tensor]]) -> Tensor:
        """All pairs at once."""
        nodes = nodes.to(weights[0][0].dtype)
        for index, (step, edge_map) in enumerate(zip(self.steps, weights, strict=True), 1):
            targets = 1 if index == len(self.steps) else nodes.shape[-2]
            nodes = step(nodes, edge_map, targets)
        return nodes[..., 0, :].float()


@MODELS.register_module()
class SAF(nn.Module):
    """Similarity attention filtration (Diao et al., AAAI 2021, Sec. 3.4).

    β = sigmoid(BN(W_f x + b)) for each node x; the result is l2norm(Σ β x / Σ β).

    Args:
        dim: S, width of a node.
        bn_scope: what gives the batch norm its statistics in training: the nodes of one 'caption'
            with all images, as in the reference, where it is called caption by caption and its
            running statistics are moved as often; or those of all pairs of the 'batch'.

    Raises:
        ValueError: for another ``bn_scope``.
    """

    def __init__(self, dim: int, bn_scope: str = 'caption') -> None:
        super().__init__()
        if bn_scope not in ('caption', 'batch'):
            raise ValueError(f"SAF.bn_scope='{bn_scope}', expected 'caption' or 'batch'")
        self.relevance = xavier_linear(dim, 1)
        self.bn = nn.BatchNorm1d(1)
        self.bn_scope = bn_scope

    def readers(self, output: nn.Linear) -> list[nn.Linear]:
        """The layers that read nodes, ``output`` too: the result is a mean of nodes."""
        return [self.relevance, output]

    @property
    def separable(self) -> bool:
        """Whether a pair's result depends on no other pair: not while statistics are theirs."""
        return not self.training

    def precompute(self, dtype: torch.dtype) -> list:
        """Nothing depends on the weights alone."""
        return []

    def forward(self, nodes: Tensor, weights: list) -> Tensor:
        """(…, N, S) to (…, S), with the running statistics."""
        relevance = self._relevance(nodes)
        return self._filter(nodes, self.bn(relevance.reshape(-1, 1)).view_as(relevance))

    def filter_jointly(self, nodes: list[Tensor], columns: list[Tensor]) -> list[Tensor]:
        """All pairs of a batch in training, with the statistics of the batch.

        Args:
            nodes: of tiles of captions of one length with all images, (I, T, N, S) each.
            columns: the indices of the captions of each tile in the batch.

        Returns:
            (I, T, S) of each tile.
        """
        relevance = [self._relevance(tile) for tile in nodes]
        if self.bn_scope == 'batch':
            normalized = self.bn(torch.cat([tile.flatten() for tile in relevance])[:, None])
            parts = normalized.split([tile.numel() for tile in relevance])
            relevance = [part.view_as(tile) for part, tile in zip(parts, relevance, strict=True)]
        else:
            relevance = self._normalize_captions(relevance, torch.cat(columns))
        return [self._filter(*pair) for pair in zip(nodes, relevance, strict=True)]

    def _normalize_captions(self, relevance: list[Tensor], columns: Tensor) -> list[Tensor]:
        """What the batch norm in training gives when it is called caption by caption.

        Args:
            relevance: (I, T, N) of each tile.
            columns: the order in which the captions, tile after tile, are called.
        """
        moments = [torch.var_mean(tile, (0, 2), correction=0) for tile in relevance]
        with torch.no_grad():
            counts = [tile.shape[0] * tile.shape[2] for tile in relevance]
            variance = [v * n / max(n - 1, 1) for (v, _), n in zip(moments, counts, strict=True)]
            order = columns.argsort().to(relevance[0].device)
            means = torch.cat([mean for _, mean in moments])[order]
            move_statistics(self.bn, means[:, None], torch.cat(variance)[order][:, None])
        return [
            (tile - mean[:, None]) * (variance[:, None] + self.bn.eps).rsqrt() * self.bn.weight
            + self.bn.bias
            for tile, (variance, mean) in zip(relevance, moments, strict=True)
        ]

    def _relevance(self, nodes: Tensor) -> Tensor:
        """W_f x + b, (…, N)."""
        return nodes @ self.relevance.weight[0] + self.relevance.bias

    def _filter(self, nodes: Tensor, relevance: Tensor) -> Tensor:
        """The weighted mean of the nodes, (…, S)."""
        weights = normalize(relevance.sigmoid(), 1, -1)
        return F.l2_normalize((weights[..., None, :] @ nodes).squeeze(-2))
