"""Scores of SAF and SGR by kernels for a Hopper GPU, in half precision, without gradients."""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from xmodal.models.sgraf.global_pooling import SelfAttentionGlobal
from xmodal.models.sgraf.local import LocalSimilarity, PrecomputedImages
from xmodal.models.sgraf.saf_sgr import SAF, SGR, GraphStep
from xmodal.products import product

# S, R and L of which the chip holds what it needs at once.
DIMS, MOST_REGIONS, MOST_WORDS = (16, 32, 64, 128, 256), 64, 127
HOPPER = (9, 0)  # has the memory on the chip


def can_fuse(reasoning: nn.Module, local: LocalSimilarity, regions: Tensor, words: Tensor) -> bool:
    """Whether the kernels take a tile.

    Args:
        reasoning: of the nodes; not one whose steps were narrowed, or a plug-in.
        local: of the words.
        regions: (B, R, D).
        words: of captions for all images, (T, L, D), or of other ones for each.
    """
    dim, width = local.linear.weight.shape
    return (
        words.is_cuda
        and _has_kernels(reasoning)
        and words.dim() == 3
        and words.dtype in (torch.bfloat16, torch.float16)
        and not torch.is_grad_enabled()
        and dim in DIMS
        and width % 64 == 0
        and regions.shape[1] <= MOST_REGIONS
        and words.shape[1] <= MOST_WORDS
        and torch.cuda.get_device_capability(words.device) >= HOPPER
        and _has_triton()
    )


def _has_kernels(reasoning: nn.Module) -> bool:
    """Whether it is SAF or SGR as they are written in the kernels."""
    if type(reasoning) is SGR:
        return all(type(step) is GraphStep for step in reasoning.steps)
    return type(reasoning) is SAF


@cache
def _has_triton() -> bool:
    """Whether Triton is there, with the descriptors of 3.4."""
    try:
        return find_spec('triton.tools.tensor_descriptor') is not None
    except ModuleNotFoundError:
        return False


@torch.compiler.disable
def fused_nodes(
    local: LocalSimilarity,
    global_pooling: nn.Module | None,
    images: PrecomputedImages,
    words: Tensor,
    vectors: Tensor | None,
) -> Tensor:
    """The similarity vectors of a tile, the global one first, (B, T, N, S).

    Args:
        local: of the words.
        global_pooling: of the global node, or None.
        images: B images.
        words: T captions of one length, (T, L, D).
        vectors: of the captions by ``global_pooling``, (T, …).
    """
    from xmodal.models.sgraf import node_kernels  # imports Triton, which not every machine has

    captions, length, _ = words.shape
    flat = words.flatten(0, 1)
    scores = product(flat, images.regions.flatten(0, 1)).unflatten(1, images.regions.shape[:2])
    weights = node_kernels.attend(scores, images.gram, images.mask, length, local.smooth)
    first = int(global_pooling is not None)
    count, dim = first + length, len(local.linear.weight)
    nodes = words.new_empty(len(images.regions), captions, count, dim)
    node_kernels.compare(nodes, first, length, flat, images.regions, weights, local.linear)
    if isinstance(global_pooling, SelfAttentionGlobal):
        whole, linear = images.vectors[:, None].to(words.dtype), global_pooling.linear
        node_kernels.compare(nodes, 0, 1, vectors.to(words.dtype), whole, None, linear)
    elif global_pooling is not None:
        nodes[:, :, 0] = global_pooling.compare(images.vectors, vectors, words.dtype)
    return nodes


@torch.compiler.disable
def fused_logits(
    reasoning: SAF | SGR, output: nn.Linear, nodes: Tensor, weights: list[tuple[Tensor, Tensor]]
) -> Tensor:
    """Logits of the similarity vectors of a tile, (B, T) float32.

    Args:
        reasoning: SAF with its running statistics, or SGR.
        output: the layer that reads its result.
        nodes: (B, T, N, S).
        weights: of SGR, precomputed.
    """
    if isinstance(reasoning, SAF):
        return _filter(reasoning, output, nodes)
    return product(_reason(reasoning, nodes, weights).float(), output.weight, output.bias)[..., 0]


def _filter(saf: SAF, output: nn.Linear, nodes: Tensor) -> Tensor:
    from xmodal.models.sgraf import reasoning_kernels

    norm = saf.bn
    slope = norm.weight * (norm.running_var + norm.eps).rsqrt()
    relevance = saf.relevance.weight[0] * slope
    offset = (saf.relevance.bias - norm.running_mean) * slope + norm.bias
    return reasoning_kernels.filter_nodes(nodes, relevance, offset, output.weight[0], output.bias)


def _reason(sgr: SGR, nodes: Tensor, weights: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Node 0 after all steps, (B, T, S)."""
    from xmodal.models.sgraf import reasoning_kernels

    for step, (weight, bias) in zip(sgr.steps[:-1], weights[:-1], strict=True):
        # W (E X) = E (X Wᵀ)ᵀ, so that one product gives queries and values.
        both = torch.cat([weight, step.linear.weight.to(weight.dtype)])
        queries, values = product(nodes, both, pad(bias, (0, len(bias)))).chunk(2, -1)
        nodes = reasoning_kernels.reason(queries, nodes, values, step.linear.bias)
    queries = product(nodes[:, :, 0].contiguous(), *weights[-1])[:, :, None]
    seen = reasoning_kernels.reason(queries, nodes, nodes, None)[:, :, 0]
    last = sgr.steps[-1].linear
    return product(seen, last.weight, last.bias).relu_()
