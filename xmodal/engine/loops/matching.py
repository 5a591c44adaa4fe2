"""Scores of many pairs by image-text matching."""

import torch
from mmengine.dist import is_main_process
from torch import Tensor, nn
from tqdm import tqdm

from xmodal.structures import Tokens

TEXTS_AT_ONCE = 4096


@torch.no_grad()
def match_pairs(
    model: nn.Module,
    images: Tokens,
    texts: tuple[Tensor, Tensor],
    pairs: Tensor,
    pair_batch: int = 128,
) -> Tensor:
    """Matching scores of pairs of encoded images and texts.

    What is known of an image or a text alone is computed once for many pairs. The pairs are taken a
    block of texts at a time, texts of like length together, and in it image by image: each text is
    encoded once, an image's keys and values are projected once for a batch of its texts and never
    repeated in memory, and no more than a block is held on the device.

    Args:
        model: has ``encode_text`` and ``match``.
        images: encoded images, on any device, (I, 1 + M, D).
        texts: word pieces and mask, both (T, N).
        pairs: rows of image and text, (P, 2) int64.
        pair_batch: pairs of an image judged at once. Fewer have less padding, of words, but each
            batch projects the image again.

    Returns:
        (P,), on the CPU, in the order of the pairs.
    """
    device = next(model.parameters()).device
    scores = torch.zeros(len(pairs))
    by_length = texts[1].sum(1).argsort(stable=True).argsort()  # each text's place
    block = by_length[pairs[:, 1]] // TEXTS_AT_ONCE
    bar = tqdm(total=len(pairs), desc='re-ranking', disable=not is_main_process())
    for number in block.unique().tolist():
        places = (block == number).nonzero().squeeze(1)
        places = places[by_length[pairs[places, 1]].argsort(stable=True)]
        places = places[pairs[places, 0].argsort(stable=True)]
        words, text_rows = pairs[places, 1].unique(return_inverse=True)
        text = _encode(model, texts, words)
        own, counts = pairs[places, 0].unique_consecutive(return_counts=True)
        batches = torch.arange(len(places)).split(counts.tolist())
        for row, of_image in zip(own, batches, strict=True):
            image = images.select(row[None]).to(device)
            for chunk in of_image.split(pair_batch):
                own_words, own_rows = text_rows[chunk].unique(return_inverse=True)
                rows = torch.stack([torch.zeros_like(own_rows), own_rows], 1).to(device)
                matching = model.match(image, _select(text, own_words.to(device)), rows)
                scores[places[chunk]] = matching.float().cpu()
                bar.update(len(chunk))
    bar.close()
    return scores


def _encode(model: nn.Module, texts: tuple[Tensor, Tensor], rows: Tensor) -> Tokens:
    """Encodes some texts, without the padding that only others need."""
    device = next(model.parameters()).device
    input_ids, mask = (x[rows].to(device) for x in texts)
    longest = int(mask.sum(1).max())
    return model.encode_text(input_ids[:, :longest], mask[:, :longest]).tokens


def _select(text: Tokens, rows: Tensor) -> Tokens:
    """Some texts, without the padding that only others need."""
    chosen = text.select(rows)
    longest = int(chosen.attention_mask.sum(1).max())
    return Tokens(chosen.embeddings[:, :longest], chosen.attention_mask[:, :longest])
