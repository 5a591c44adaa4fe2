"""Scores of every image with every caption of a test set."""

import torch
from mmengine.dist import all_reduce, get_dist_info, is_main_process
from torch import Tensor
from tqdm import tqdm

from xmodal.models.sgraf.pairwise import PairwiseSimilarity
from xmodal.models.sgraf.tiles import (
    CPU_SCORING_BYTES,
    caption_tiles,
    captions_of,
    pair_budget,
    precompute_images,
    score_captions,
    words_at_once,
)
from xmodal.products import fastest_dtype
from xmodal.structures import PackedTexts, Tokens


@torch.no_grad()
def score_all_pairs(
    similarity: PairwiseSimilarity,
    images: Tokens,
    texts: PackedTexts,
    *,
    dtype: torch.dtype | None = None,
    progress: bool = False,
    compile: bool = False,
) -> Tensor:
    """Scores all pairs of encoded images and captions, tile by tile.

    The scores do not depend on the tiles. With several processes, every process has the tokens of
    all images and captions and scores its share of the captions.

    Args:
        similarity: in evaluation mode, on the device that computes.
        images: (I, R, D), on any device.
        texts: word embeddings of T captions, on any device.
        dtype: of the large products, ``torch.bfloat16`` or ``torch.float16``; None for float32,
            which a CPU without kernels of half precision always takes. Norms, softmax and logits
            are always in float32.
        progress: show a progress bar.
        compile: compile the computation of a tile with ``torch.compile`` (on GPUs).

    Returns:
        Logits, (I, T) float32, on the CPU.

    Raises:
        ValueError: when the similarity is in training mode, or a caption has no words.
    """
    if similarity.training:
        raise ValueError('score_all_pairs needs similarity.eval(): in training pairs may interact')
    device = next(similarity.parameters()).device
    dtype = fastest_dtype(dtype or torch.float32, device)
    budget = pair_budget(similarity, device, dtype, CPU_SCORING_BYTES)
    score = torch.compile(similarity.score, dynamic=True) if compile else similarity.score

    rank, ranks = get_dist_info()
    tiles = caption_tiles(texts.lengths, words_at_once(device))[rank::ranks]
    scores = torch.zeros(len(texts.lengths), len(images.embeddings))  # rows are written faster
    bar = tqdm(
        total=sum(map(len, tiles)),
        desc='scoring',
        unit='caption',
        disable=not progress or not is_main_process(),
    )
    with bar, torch.autocast(device.type, enabled=False):
        weights = similarity.precompute_weights(dtype)
        precomputed_images = precompute_images(similarity, images, device, dtype)
        for columns in tiles:
            captions = captions_of(texts, columns).to(device)
            precomputed = similarity.precompute_texts(Tokens(captions), dtype)
            rows = max(1, budget // captions[..., 0].numel())
            logits = score_captions(score, precomputed_images, precomputed, weights, rows)
            scores[columns] = logits.mT.float().contiguous().cpu()
            bar.update(len(columns))
    if ranks > 1:
        all_reduce(scores)
    return scores.mT
