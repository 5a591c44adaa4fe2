"""The nodes of a tile of SAF or SGR in half precision on a GPU, in Triton.

PyTorch writes and reads what lies between the steps of a tile, differences of width D above all.
Here it stays on the chip: nodes cost their products, and are written once. The names are those of
:class:`LocalSimilarity`, whose results these are. Sizes are not specialized, or each length of
captions would compile programs of its own.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from xmodal.models.sgraf import local

EPS = tl.constexpr(local.EPS)  # below it a vector has no direction
# Words and dimensions of a piece. Of a Hopper GPU one piece takes a multiprocessor.
BLOCK_P, BLOCK_D = 128, 64
CAPTIONS = 8  # that share the load of an image's Gram matrix
WARP_ROWS = 16  # the fastest on an H200 for captions of COCO's length


def block_of(size: int) -> int:
    """The block that Triton's products take for this many rows."""
    return max(16, triton.next_power_of_2(size))


def warps_of(block: int) -> int:
    """The warps of a program that has this many rows."""
    return min(4, block // WARP_ROWS)


def attend(scores: Tensor, gram: Tensor, mask: Tensor | None, length: int, smooth: float) -> Tensor:
    """Weights of the regions for every word, such that their sum of regions has norm 1.

    Args:
        scores: of P words with the regions of B images, (P, B, R), in half precision.
        gram: V Vᵀ, (B, R, R) float32.
        mask: True for real regions, (B, R) bool; None when all are.
        length: L, words of each caption.
        smooth: λ.

    Returns:
        (B, P, R), in the type of the scores.
    """
    words, images, regions = scores.shape
    weights = scores.new_empty(images, words, regions)
    captions, block_l = words // length, block_of(length)
    _attend[(images * triton.cdiv(captions, CAPTIONS),)](
        scores,
        gram,
        None if mask is None else mask.to(torch.int8),
        weights,
        images,
        captions,
        regions,
        length,
        smooth,
        CAPTIONS=CAPTIONS,
        BLOCK_L=block_l,
        BLOCK_R=block_of(regions),
        num_warps=warps_of(block_l),
    )
    return weights


def compare(
    nodes: Tensor,
    first: int,
    length: int,
    words: Tensor,
    regions: Tensor,
    weights: Tensor | None,
    linear: torch.nn.Linear,
) -> None:
    """Writes l2norm(W (a V − w)² + b) of every word into its caption's nodes.

    Args:
        nodes: (B, T, N, S), in half precision, contiguous.
        first: the place of a caption's first word among its nodes.
        length: L, words of each caption.
        words: w, (P, D), P = T L.
        regions: V, (B, R, D).
        weights: a, (B, P, R); None if R = 1, and the image's vector is compared as it is.
        linear: W and b.
    """
    images, _, count, dim = nodes.shape
    blocks, width = triton.cdiv(len(words), BLOCK_P), words.shape[1]
    block_r = block_of(regions.shape[1])
    _compare[(images * blocks,)](
        nodes,
        TensorDescriptor.from_tensor(words, [BLOCK_P, BLOCK_D]),
        TensorDescriptor.from_tensor(regions.flatten(0, 1), [block_r, BLOCK_D]),
        weights,
        TensorDescriptor.from_tensor(linear.weight.to(nodes.dtype), [dim, BLOCK_D]),
        linear.bias,
        blocks,
        len(words),
        regions.shape[1],
        length,
        count,
        first,
        DIMS=width,
        DIM=dim,
        BLOCK_P=BLOCK_P,
        BLOCK_R=block_r,
        BLOCK_D=BLOCK_D,
        STAGES=3,
        num_warps=8,
    )


@triton.jit(do_not_specialize=['images', 'captions', 'regions', 'length'])
def _attend(
    scores,
    gram,
    mask,
    weights,
    images,
    captions,
    regions,
    length,
    smooth,
    CAPTIONS: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    """Some captions with an image; neighbouring programs have neighbouring images."""
    image, first = tl.program_id(0) % images, tl.program_id(0) // images * CAPTIONS
    line, column, row = tl.arange(0, BLOCK_L), tl.arange(0, BLOCK_R), tl.arange(0, BLOCK_R)
    is_region = column < regions
    products = tl.load(
        gram + image * regions * regions + row[:, None] * regions + column[None, :],
        mask=(row < regions)[:, None] & is_region[None, :],
        other=0.0,
    ).to(scores.dtype.element_ty)
    real = is_region
    if mask is not None:
        real = real & (tl.load(mask + image * regions + column, mask=real, other=0) != 0)
    inside = (line < length)[:, None] & is_region[None, :]
    of_scores = line[:, None] * (images * regions) + column[None, :]
    of_weights = line[:, None] * regions + column[None, :]
    for caption in range(first, tl.minimum(first + CAPTIONS, captions)):
        word = (caption * length).to(tl.int64)
        x = tl.load(scores + (word * images + image) * regions + of_scores, mask=inside, other=0.0)
        x = x.to(tl.float32)
        x = tl.maximum(x, 0.1 * x)
        x *= (smooth * inverse_length(tl.sum(x * x, 0)))[None, :]
        x = tl.where(real[None, :], x, -float('inf'))
        x = tl.exp(x - tl.max(x, 1)[:, None])  # the sum of a softmax would divide out below
        seen = tl.dot(x.to(products.dtype), products)
        x *= inverse_length(tl.sum(seen * x, 1))[:, None]
        place = weights + (image.to(tl.int64) * captions * length + word) * regions
        tl.store(place + of_weights, x.to(weights.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=['blocks', 'num_words', 'num_regions', 'length', 'count', 'first'])
def _compare(
    nodes,
    words,
    regions,
    weights,
    weight,
    bias,
    blocks,
    num_words,
    num_regions,
    length,
    count,
    first,
    DIMS: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Some words with an image: D is passed in pieces, of which only the projection stays."""
    image, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BLOCK_P
    word, region, out = block + tl.arange(0, BLOCK_P), tl.arange(0, BLOCK_R), tl.arange(0, DIM)
    is_word = word < num_words
    half = nodes.dtype.element_ty
    inside = is_word[:, None] & (region < num_regions)[None, :]
    if weights is None:
        a = tl.where(inside, 1.0, 0.0).to(half)
    else:
        places = word[:, None] * num_regions + region[None, :]
        weights += image.to(tl.int64) * num_words * num_regions
        a = tl.load(weights + places, mask=inside, other=0.0)
    projected = tl.zeros((BLOCK_P, DIM), dtype=tl.float32)
    projected += tl.load(bias + out).to(tl.float32)[None, :]
    for start in tl.range(0, DIMS, BLOCK_D, num_stages=STAGES):
        # the next image's regions are among the last rows, with weights of 0
        seen = tl.dot(a, regions.load([image * num_regions, start]))
        difference = seen.to(half) - words.load([block, start])
        columns = weight.load([0, start])
        projected = tl.dot(difference * difference, columns.T, projected)
    projected *= inverse_length(tl.sum(projected * projected, 1))[:, None]
    nodes += image.to(tl.int64) * (num_words // length) * count * DIM
    row = word // length * count + word % length + first
    tl.store(nodes + row[:, None] * DIM + out[None, :], projected.to(half), mask=is_word[:, None])


@triton.jit
def inverse_length(squared):
    return tl.where(squared < EPS * EPS, 0.0, tl.rsqrt(tl.maximum(squared, EPS * EPS)))
