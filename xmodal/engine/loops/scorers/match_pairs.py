"""ITM scores of many pairs."""

import torch
from mmengine.dist import is_main_process
from torch import Tensor, nn
from tqdm import tqdm

from xmodal.structures import PackedTexts, Tokens

TEXTS_AT_ONCE = 4096


@torch.no_grad()
def match_pairs(
    model: nn.Module, images: Tokens, texts: PackedTexts, pairs: Tensor, pair_batch: int
) -> Tensor:
    """ITM scores of pairs of encoded images and texts.

    The pairs are scored in blocks of texts of similar length, and within a block image by image. So
    the keys and values of an image are projected once for a batch of its texts and never repeated
    in memory, and the device holds no more than one block of texts.

    Args:
        model: has ``match``.
        images: encoded images, (I, 1 + M, D), on any device.
        texts: encoded words of T texts, on any device.
        pairs: rows of image and text, (P, 2) int64.
        pair_batch: number of pairs of an image that are scored at once. Smaller batches have less
            padding, but each batch projects the image again.

    Returns:
        (P,), on the CPU, in the order of the pairs.
    """
    device = next(model.parameters()).device
    scores = torch.zeros(len(pairs))
    length_ranks = texts.lengths.argsort(stable=True).argsort()
    blocks = length_ranks[pairs[:, 1]] // TEXTS_AT_ONCE
    bar = tqdm(total=len(pairs), desc='re-ranking', unit=' pairs', disable=not is_main_process())
    for block in blocks.unique().tolist():
        in_block = (blocks == block).nonzero().squeeze(1)
        in_block = in_block[length_ranks[pairs[in_block, 1]].argsort(stable=True)]
        in_block = in_block[pairs[in_block, 0].argsort(stable=True)]
        block_texts, text_rows = pairs[in_block, 1].unique(return_inverse=True)
        words = texts.select(block_texts).to(device)
        image_rows, counts = pairs[in_block, 0].unique_consecutive(return_counts=True)
        pairs_of_images = torch.arange(len(in_block)).split(counts.tolist())
        for image_row, pairs_of_image in zip(image_rows, pairs_of_images, strict=True):
            image = images.select(image_row[None]).to(device)
            for chunk in pairs_of_image.split(pair_batch):
                text = Tokens(*words.select(text_rows[chunk]).pad())
                rows = torch.arange(len(chunk), device=device)
                matched = model.match(image, text, torch.stack([torch.zeros_like(rows), rows], 1))
                scores[in_block[chunk]] = matched.float().cpu()
                bar.update(len(chunk))
    bar.close()
    return scores
