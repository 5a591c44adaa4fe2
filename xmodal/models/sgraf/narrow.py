"""A similarity whose similarity vectors are cut to their few principal directions."""

from collections.abc import Iterable
from copy import deepcopy

import torch
from torch import Tensor, nn

from xmodal.models.sgraf.global_pooling import SelfAttentionGlobal
from xmodal.models.sgraf.similarity import SGRAFSimilarity
from xmodal.models.sgraf.tiles import (
    CPU_SCORING_BYTES,
    caption_tiles,
    captions_of,
    pair_budget,
    precompute_images,
)
from xmodal.products import product
from xmodal.structures import PackedTexts, Tokens

IMAGES, CAPTIONS = 64, 256  # of the sample: its pairs have tens of thousands of nodes


def require_directions(similarity: nn.Module, dim: int) -> None:
    """Checks that a similarity can be narrowed.

    Raises:
        ValueError: when it has no similarity vectors, or fewer directions than ``dim``.
    """
    if not isinstance(similarity, SGRAFSimilarity):
        raise ValueError(
            f'a {type(similarity).__name__} has no similarity vectors to narrow: a cascade takes '
            'SGRAFSimilarity'
        )
    most = len(similarity.local.linear.weight)
    if not 0 < dim <= most:
        raise ValueError(f'dim={dim}, expected 1 to {most}, similarity.dim')


@torch.no_grad()
def narrow(
    similarity: SGRAFSimilarity, images: Tokens, texts: PackedTexts, dim: int
) -> SGRAFSimilarity:
    """A copy of SAF or SGR with similarity vectors of another width, for cheap scores.

    Nine tenths of a pair's arithmetic is the product of (c − w)² with a (D, S) matrix, and nodes of
    trained models vary in few directions. So the product gives the nodes' first ``dim`` principal
    components B, and the layers that read nodes are multiplied by B; so do the steps of SGR. With
    ``dim`` = S nothing but the rotation of the nodes changes, and scores are the same.

    Args:
        similarity: in evaluation mode.
        images: (I, R, D), of which a sample is taken for B.
        texts: T captions, of which a sample is taken.
        dim: S of the copy.

    Raises:
        ValueError: see :func:`require_directions`.
    """
    require_directions(similarity, dim)
    weight, bias = similarity.local.linear.weight, similarity.local.linear.bias
    sample = _Sample(similarity, images, texts)
    copy = deepcopy(similarity)
    basis = sample.directions(copy, 0, dim)
    copy.local.linear = _linear(basis.T @ weight, basis.T @ bias)
    pooling = copy.global_pooling
    if isinstance(pooling, SelfAttentionGlobal):
        pooling.linear = _linear(basis.T @ pooling.linear.weight, basis.T @ pooling.linear.bias)
    elif pooling is not None:  # its ReLU needs the whole width
        copy.global_pooling = _NarrowGlobal(pooling, basis)
    _project(copy.reasoning.readers(copy.output), basis)
    steps = getattr(copy.reasoning, 'steps', [])
    for index in range(1, len(steps)):
        basis = sample.directions(copy, index, dim)
        steps[index - 1] = _NarrowStep(steps[index - 1], basis)
        _project(steps[index].children(), basis)
    return copy.eval()


class _NarrowGlobal(nn.Module):
    """A global pooling whose nodes, (B, T, S), are cut to ``basis``, (S, dim)."""

    def __init__(self, pooling: nn.Module, basis: Tensor) -> None:
        super().__init__()
        self.pool_images, self.pool_texts = pooling.pool_images, pooling.pool_texts
        self.whole, self.basis = pooling.compare, basis

    def compare(self, images: Tensor, texts: Tensor, dtype: torch.dtype) -> Tensor:
        """(B, …) with (T, …) or (B, T, …) to (B, T, dim) float32."""
        return product(self.whole(images, texts, dtype), self.basis.T)


class _NarrowStep(nn.Module):
    """A step of SGR whose nodes are cut to ``basis``, (S, dim)."""

    def __init__(self, step: nn.Module, basis: Tensor) -> None:
        super().__init__()
        self.step, self.basis, self.edge_map = step, basis, step.edge_map

    def forward(self, nodes: Tensor, edge_map: tuple[Tensor, Tensor], targets: int) -> Tensor:
        """The first ``targets`` nodes after the step, (…, targets, dim)."""
        return product(self.step(nodes, edge_map, targets), self.basis.T)


class _Sample:
    """Some pairs of a test set, evenly spaced."""

    def __init__(self, similarity: SGRAFSimilarity, images: Tokens, texts: PackedTexts) -> None:
        device = similarity.output.weight.device
        images = images.select(_evenly(len(images.embeddings), IMAGES))
        texts = texts.select(_evenly(len(texts.lengths), CAPTIONS)).to(device)
        budget = pair_budget(similarity, device, torch.float32, CPU_SCORING_BYTES)
        tiles = caption_tiles(texts.lengths, max(1, budget // len(images.embeddings)))
        self.images, self.device = images, device
        self.captions = [Tokens(captions_of(texts, columns)) for columns in tiles]

    def directions(self, similarity: SGRAFSimilarity, steps: int, dim: int) -> Tensor:
        """Principal directions of the nodes after some steps of SGR, (S, dim)."""
        images = precompute_images(similarity, self.images, self.device, torch.float32)
        weights, moments = similarity.precompute_weights(torch.float32)[:steps], 0.0
        for captions in self.captions:
            nodes = similarity.nodes(images, similarity.precompute_texts(captions, torch.float32))
            for index, edge_map in enumerate(weights):
                nodes = similarity.reasoning.steps[index](nodes, edge_map, nodes.shape[-2])
            flat = nodes.flatten(0, 2).double()
            moments = moments + flat.T @ flat
        return torch.linalg.eigh(moments).eigenvectors[:, -dim:].float()


def _project(layers: Iterable[nn.Linear], basis: Tensor) -> None:
    """Makes layers read vectors that are cut to ``basis``."""
    for layer in layers:
        layer.weight = nn.Parameter(layer.weight @ basis)


def _evenly(count: int, size: int) -> Tensor:
    """At most ``size`` rows, evenly spaced."""
    return torch.linspace(0, count - 1, min(count, size)).long()


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(*reversed(weight.shape), device=weight.device)
    layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
    return layer
