"""A similarity whose similarity vectors are cut to their few principal directions."""

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


@torch.no_grad()
def narrow(
    similarity: SGRAFSimilarity, images: Tokens, texts: PackedTexts, dim: int
) -> SGRAFSimilarity:
    """A copy of SAF or SGR with similarity vectors of another width, for cheap scores.

    Nine tenths of a pair's arithmetic is the product of (c − w)² with a (D, S) matrix, and nodes of
    trained models vary in few directions. So the product gives the nodes' first ``dim`` principal
    components B, and the layers that read nodes are multiplied by B. With ``dim`` = S nothing but
    the rotation of the nodes changes, and scores are the same.

    Args:
        similarity: in evaluation mode.
        images: (I, R, D), of which a sample is taken for B.
        texts: T captions, of which a sample is taken.
        dim: S of the copy.

    Raises:
        ValueError: when ``similarity`` has no similarity vectors, or fewer directions than ``dim``.
    """
    if not isinstance(similarity, SGRAFSimilarity):
        raise ValueError(
            f'a {type(similarity).__name__} has no similarity vectors to narrow: a cascade takes '
            'SGRAFSimilarity'
        )
    weight, bias = similarity.local.linear.weight, similarity.local.linear.bias
    if not 0 < dim <= len(weight):
        raise ValueError(f'dim={dim}, expected 1 to {len(weight)}, similarity.dim')
    basis = torch.linalg.eigh(_moments(similarity, images, texts)).eigenvectors[:, -dim:]
    basis = basis.to(weight)
    copy = deepcopy(similarity)
    copy.local.linear = _linear(basis.T @ weight, basis.T @ bias)
    pooling = copy.global_pooling
    if isinstance(pooling, SelfAttentionGlobal):
        pooling.linear = _linear(basis.T @ pooling.linear.weight, basis.T @ pooling.linear.bias)
    elif pooling is not None:  # its ReLU needs the whole width
        copy.global_pooling = _NarrowGlobal(pooling, basis)
    for layer in copy.reasoning.readers(copy.output):
        layer.weight = nn.Parameter(layer.weight @ basis)
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


def _moments(similarity: SGRAFSimilarity, images: Tokens, texts: PackedTexts) -> Tensor:
    """Second moments of the nodes of a sample of pairs, (S, S) float64."""
    device = similarity.output.weight.device
    images = images.select(_evenly(len(images.embeddings), IMAGES))
    texts = texts.select(_evenly(len(texts.lengths), CAPTIONS))
    precomputed = precompute_images(similarity, images, device, torch.float32)
    budget = pair_budget(similarity, device, torch.float32, CPU_SCORING_BYTES)
    moments = 0.0
    for columns in caption_tiles(texts.lengths, max(1, budget // len(images.embeddings))):
        captions = Tokens(captions_of(texts, columns).to(device))
        tile = similarity.precompute_texts(captions, torch.float32)
        nodes = similarity.nodes(precomputed, tile).flatten(0, 2).double()
        moments = moments + nodes.T @ nodes
    return moments


def _evenly(count: int, size: int) -> Tensor:
    """At most ``size`` rows, evenly spaced."""
    return torch.linspace(0, count - 1, min(count, size)).long()


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(*reversed(weight.shape), device=weight.device)
    layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
    return layer
