"""From the nodes of a tile to its logits in half precision on a GPU, in Triton.

Each caption with an image is read once. The names are those of :class:`SGR` and :class:`SAF`, whose
results these are. Sizes are not specialized, as in :mod:`node_kernels`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from xmodal.models.sgraf.node_kernels import EPS, block_of, inverse_length, warps_of


def reason(queries: Tensor, nodes: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """E V, or ReLU(E V + b), with E = softmax(Q Xᵀ), for each caption with an image.

    Args:
        queries: Q, (B, T, M, S); rows need not be next to each other.
        nodes: X, (B, T, N, S), contiguous.
        values: V, as ``nodes``; rows need not be next to each other.
        bias: b, (S,); None for neither b nor ReLU.

    Returns:
        (B, T, M, S), in the type of the nodes.
    """
    *pairs, targets, dim = queries.shape
    count, block_n = nodes.shape[2], block_of(nodes.shape[2])
    result = nodes.new_empty(*pairs, targets, dim)
    _reason[(pairs[0] * pairs[1],)](
        queries,
        nodes,
        values,
        bias,
        result,
        targets,
        count,
        queries.stride(2),
        values.stride(2),
        HAS_BIAS=bias is not None,
        DIM=dim,
        BLOCK_T=block_of(targets),
        BLOCK_N=block_n,
        num_warps=warps_of(block_n),
    )
    return result


def filter_nodes(
    nodes: Tensor, relevance: Tensor, offset: Tensor, readout: Tensor, bias: Tensor
) -> Tensor:
    """Logits r · l2norm(Σ β x / Σ β) + b with β = sigmoid(v · x + o), (B, T) float32.

    Args:
        nodes: x, (B, T, N, S), contiguous.
        relevance: v, (S,) float32.
        offset: o, (1,) float32.
        readout: r, (S,) float32.
        bias: b, (1,) float32.
    """
    images, captions, count, dim = nodes.shape
    logits = nodes.new_empty(images, captions, dtype=torch.float32)
    block_n = block_of(count)
    _filter[(logits.numel(),)](
        nodes,
        relevance,
        offset,
        readout,
        bias,
        logits,
        count,
        DIM=dim,
        BLOCK_N=block_n,
        num_warps=warps_of(block_n),
    )
    return logits


@triton.jit(do_not_specialize=['targets', 'count'])
def _reason(
    queries,
    nodes,
    values,
    bias,
    result,
    targets,
    count,
    query_stride,
    value_stride,
    HAS_BIAS: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """A caption with an image."""
    pair = tl.program_id(0).to(tl.int64)
    target, node, column = tl.arange(0, BLOCK_T), tl.arange(0, BLOCK_N), tl.arange(0, DIM)
    is_target, is_node = (target < targets)[:, None], (node < count)[:, None]
    of_targets, of_nodes = pair * targets + target[:, None], pair * count + node[:, None]
    q = tl.load(queries + of_targets * query_stride + column[None, :], mask=is_target, other=0.0)
    x = tl.load(nodes + of_nodes * DIM + column[None, :], mask=is_node, other=0.0)
    v = tl.load(values + of_nodes * value_stride + column[None, :], mask=is_node, other=0.0)
    edges = tl.where((node < count)[None, :], tl.dot(q, x.T), -float('inf'))
    edges = tl.exp(edges - tl.max(edges, 1)[:, None])
    edges = edges / tl.sum(edges, 1)[:, None]
    seen = tl.dot(edges.to(v.dtype), v)
    if HAS_BIAS:
        seen = tl.maximum(seen + tl.load(bias + column).to(tl.float32)[None, :], 0.0)
    places = result + of_targets * DIM + column[None, :]
    tl.store(places, seen.to(result.dtype.element_ty), mask=is_target)


@triton.jit(do_not_specialize=['count'])
def _filter(
    nodes,
    relevance,
    offset,
    readout,
    bias,
    logits,
    count,
    DIM: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """A caption with an image."""
    pair = tl.program_id(0).to(tl.int64)
    node, column = tl.arange(0, BLOCK_N), tl.arange(0, DIM)
    places = (pair * count + node[:, None]) * DIM + column[None, :]
    x = tl.load(nodes + places, mask=(node < count)[:, None], other=0.0).to(tl.float32)
    relevant = tl.sum(x * tl.load(relevance + column)[None, :], 1) + tl.load(offset)
    gate = tl.where(node < count, 1 / (1 + tl.exp(-relevant)), 0.0)
    total = tl.sum(gate, 0)
    # the mean's direction: Σ β divides out, but for a sum that is nothing
    gate = tl.where(total < EPS, 0.0, gate / tl.maximum(total, EPS))
    mean = tl.sum(x * gate[:, None], 0)
    logit = tl.sum(mean * tl.load(readout + column), 0) * inverse_length(tl.sum(mean * mean, 0))
    tl.store(logits + pair, logit + tl.load(bias))
