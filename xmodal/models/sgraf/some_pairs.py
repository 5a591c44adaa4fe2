"""Scores of chosen pairs of a test set."""

import torch
from mmengine.dist import all_reduce, get_dist_info
from torch import Tensor

from xmodal.models.sgraf.pairwise import PairwiseSimilarity, take
from xmodal.models.sgraf.tiles import (
    CPU_SCORING_BYTES,
    caption_tiles,
    captions_of,
    pair_budget,
    precompute_images,
)
from xmodal.structures import PackedTexts, Tokens

# Words of the captions of a tile, of which an image has few: enough for products of a few hundred.
WORDS_AT_ONCE = 2**16


@torch.no_grad()
def score_pairs(
    similarity: PairwiseSimilarity, images: Tokens, texts: PackedTexts, chosen: Tensor
) -> Tensor:
    """Scores the chosen pairs in float32; with several processes, each scores its share.

    Args:
        similarity: in evaluation mode, on the device that computes.
        images: (I, R, D), on any device.
        texts: word embeddings of T captions, on any device.
        chosen: (I, T) bool, on the CPU.

    Returns:
        Logits as of :func:`score_all_pairs`, 0 for the other pairs, (I, T) float32, on the CPU.
    """
    device = next(similarity.parameters()).device
    budget = pair_budget(similarity, device, torch.float32, CPU_SCORING_BYTES)
    rank, ranks = get_dist_info()
    scores = torch.zeros(chosen.shape)
    with torch.autocast(device.type, enabled=False):
        weights = similarity.precompute_weights(torch.float32)
        precomputed = precompute_images(similarity, images, device, torch.float32)
        for columns in caption_tiles(texts.lengths, WORDS_AT_ONCE):
            captions = Tokens(captions_of(texts, columns).to(device))
            tile = similarity.precompute_texts(captions, torch.float32)
            at_once = max(1, budget // captions.embeddings.shape[1])
            # Image by image: a copy of its regions for every pair would take longer than the pair.
            for image in range(rank, len(chosen), ranks):
                for rows in chosen[image, columns].nonzero().squeeze(1).split(at_once):
                    regions, words = take(precomputed, slice(image, image + 1)), take(tile, rows)
                    logits = similarity.score(regions, words, weights)
                    scores[image, columns[rows]] = logits[0].float().cpu()
    if ranks > 1:
        all_reduce(scores)
    return scores
