"""Tiles of pairs, which are scored at once."""

from collections.abc import Callable

import torch
from torch import Tensor

from xmodal.models.sgraf.pairwise import PairwiseSimilarity, drop_idle_mask, join, take
from xmodal.structures import PackedTexts, Tokens

IMAGES_AT_ONCE = 256  # images precomputed at once
CUDA_BYTES = 16 * 2**30  # tiles take longer than their launches
# What fits the last cache of a server's processor; smaller tiles cost more calls than they save. In
# training a tile has all images, few captions make slow products, and each tile adds a gradient of
# all regions to that of the others: a tile of most lengths has all its captions.
CPU_SCORING_BYTES, CPU_TRAINING_BYTES = 64 * 2**20, 256 * 2**20


def caption_tiles(lengths: Tensor, words: int) -> list[Tensor]:
    """Cuts captions into tiles of one length each, shortest first.

    Attention normalises over the words of a caption, and reasoning over its nodes. With captions of
    one length neither needs padding or masks.

    Args:
        lengths: number of words of each caption, (T,) int64, on the CPU.
        words: largest number of words of a tile; a tile has at least one caption.

    Returns:
        Rows of the captions of each tile, int64.

    Raises:
        ValueError: names a caption without words.
    """
    if not lengths.all():
        raise ValueError(f'caption {int(lengths.argmin())} has no words: there is nothing to score')
    tiles = []
    for length in lengths.unique().tolist():
        rows = (lengths == length).nonzero().squeeze(1)
        tiles += rows.split(max(1, words // length))
    return tiles


def words_at_once(device: torch.device) -> int:
    """Words of a tile that are enough for matrix products to run at full rate."""
    return 2048 if device.type == 'cpu' else 16384


def captions_of(texts: PackedTexts, rows: Tensor) -> Tensor:
    """Word embeddings of captions of one length, (K, L, D)."""
    return texts.select(rows).values.unflatten(0, (len(rows), -1))


def precompute_images(
    similarity: PairwiseSimilarity, images: Tokens, device: torch.device, dtype: torch.dtype
) -> tuple:
    """What the pairs need of all images, computed a few images at a time."""
    images = drop_idle_mask(images)
    parts = []
    for start in range(0, len(images.embeddings), IMAGES_AT_ONCE):
        chunk = (None if x is None else x[start : start + IMAGES_AT_ONCE] for x in images[:2])
        chunk = Tokens(*(None if x is None else x.to(device) for x in chunk))
        parts.append(similarity.precompute_images(chunk, dtype))
    return join(parts)


def pair_budget(
    similarity: PairwiseSimilarity, device: torch.device, dtype: torch.dtype, cpu_bytes: int
) -> int:
    """The largest number of pairs of an image and a word in a tile.

    Args:
        similarity: knows the memory of a pair.
        device: that computes; on CUDA at most half of its free memory is used.
        dtype: of the products.
        cpu_bytes: memory of a tile on a CPU.
    """
    budget = cpu_bytes
    if device.type == 'cuda':
        budget = min(CUDA_BYTES, torch.cuda.mem_get_info(device)[0] // 2)
    return max(1, budget // similarity.word_bytes(dtype))


def score_captions(
    score: Callable, images: tuple, texts: tuple, weights: list, rows: int
) -> Tensor:
    """Logits of all images with captions of one length, (I, T), some images at a time.

    Args:
        score: :meth:`PairwiseSimilarity.score`.
        images: precomputed, I rows.
        texts: precomputed, T captions of one length.
        weights: precomputed.
        rows: images of a tile.
    """
    starts = range(0, len(images[0]), rows)
    tiles = [take(images, slice(start, start + rows)) for start in starts]
    return torch.cat([score(tile, texts, weights) for tile in tiles])
