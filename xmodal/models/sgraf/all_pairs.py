"""Scores of every image with every caption of a test set."""

import torch
from mmengine.dist import all_reduce, get_dist_info, is_main_process
from torch import Tensor
from tqdm import tqdm

from xmodal.models.sgraf.pairwise import PairwiseSimilarity, drop_idle_mask, join
from xmodal.models.sgraf.tiles import (
    CPU_SCORING_BYTES,
    WORDS,
    caption_tiles,
    pair_budget,
    score_captions,
)
from xmodal.structures import Tokens

IMAGES_AT_ONCE = 256  # that are precomputed


@torch.no_grad()
def score_all_pairs(
    similarity: PairwiseSimilarity,
    images: Tokens,
    texts: list[Tensor] | Tokens,
    *,
    tile: tuple[int, int] | None = None,
    dtype: torch.dtype | None = None,
    progress: bool = False,
    compile: bool = False,
) -> Tensor:
    """Scores all pairs of encoded images and captions, tile by tile.

    Scores don't depend on the tiles. Of several processes, which all have all tokens, each scores
    its share of the captions.

    Args:
        similarity: in evaluation mode, on the device that computes.
        images: (I, R, D), on any device.
        texts: (L, D) of each caption, or padded at the end, (T, L, D) with a mask; on any device.
        tile: images and words of a tile; None for what the memory or the cache has room for.
        dtype: of the large products, ``torch.bfloat16`` or ``torch.float16``; norms, softmax and
            logits are in float32, which None is for the products as well.
        progress: show a bar with the time that is left.
        compile: compile the computation of a tile with ``torch.compile`` (on GPUs).

    Returns:
        Logits, (I, T) float32, on the CPU.

    Raises:
        ValueError: when the similarity is in training mode, or a caption has no words.
    """
    if similarity.training:
        raise ValueError('score_all_pairs needs similarity.eval(): in training pairs may interact')
    dtype = dtype or torch.float32
    device = next(similarity.parameters()).device
    lengths = caption_lengths(texts)
    budget = pair_budget(similarity, device, dtype, CPU_SCORING_BYTES)
    rows, words = tile or (None, WORDS)
    score = torch.compile(similarity.score, dynamic=True) if compile else similarity.score

    rank, ranks = get_dist_info()
    own = caption_tiles(lengths, words)[rank::ranks]
    scores = torch.zeros(len(images.embeddings), len(lengths))
    bar = tqdm(
        total=sum(map(len, own)),
        desc='scoring',
        unit='caption',
        disable=not progress or not is_main_process(),
    )
    with bar, torch.autocast(device.type, enabled=False):
        weights = similarity.precompute_weights(dtype)
        precomputed_images = _precompute_images(similarity, images, device, dtype)
        for columns in own:
            captions = _captions(texts, columns, int(lengths[columns[0]])).to(device)
            precomputed = similarity.precompute_texts(Tokens(captions), dtype)
            at_once = rows or max(1, budget // captions[..., 0].numel())
            logits = score_captions(score, precomputed_images, precomputed, weights, at_once)
            scores[:, columns] = logits.float().cpu()
            bar.update(len(columns))
    if ranks > 1:
        all_reduce(scores)
    return scores


def caption_lengths(texts: list[Tensor] | Tokens) -> Tensor:
    """Words of each caption, (T,) int64, on the CPU.

    Raises:
        ValueError: names a caption without words.
    """
    if isinstance(texts, Tokens):
        lengths = texts.full_mask().sum(1).cpu()
    else:
        lengths = torch.tensor([len(words) for words in texts])
    if not lengths.all():
        raise ValueError(f'caption {int(lengths.argmin())} has no words: there is nothing to score')
    return lengths


def _precompute_images(
    similarity: PairwiseSimilarity, images: Tokens, device: torch.device, dtype: torch.dtype
) -> tuple:
    """What the pairs need of all images, computed a few at a time."""
    images = drop_idle_mask(images)
    parts = []
    for start in range(0, len(images.embeddings), IMAGES_AT_ONCE):
        own = (None if x is None else x[start : start + IMAGES_AT_ONCE] for x in images[:2])
        own = Tokens(*(None if x is None else x.to(device) for x in own))
        parts.append(similarity.precompute_images(own, dtype))
    return join(parts)


def _captions(texts: list[Tensor] | Tokens, rows: Tensor, length: int) -> Tensor:
    """Some captions of one length, (K, L, D)."""
    if isinstance(texts, Tokens):
        return texts.embeddings[rows.to(texts.embeddings.device), :length]
    return torch.stack([texts[row] for row in rows.tolist()])
