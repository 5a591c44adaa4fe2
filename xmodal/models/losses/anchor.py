"""The anchor loss L_ace (ACE-RPE, Eqs. 1-2)."""

import torch
from torch import Tensor

from xmodal import functional as F
from xmodal.structures import Keys, Tokens


def anchor_hinges(
    image: Tensor,
    text: Tensor,
    partners: Keys,
    keys: Keys,
    positives: Tensor,
    margin: float,
    scale: float,
) -> Tensor:
    """H_i2t and H_t2i (Eq. 2) of a batch.

    Args:
        image: f's image embeddings, (B, d).
        text: f's text embeddings, (B, d).
        partners: the teacher's embeddings of the same B pairs: the positives of the hinge.
        keys: K embeddings, of which those that are neither empty nor positives are the negatives.
        positives: keys that share image or text with a pair, (B, K) bool.
        margin: δ.
        scale: λ.

    Returns:
        (2, B).
    """
    negatives = ~positives & ~keys.is_empty
    hinges = []
    for query, partner, candidates in (
        (image, partners.text_embeddings, keys.text_embeddings),
        (text, partners.image_embeddings, keys.image_embeddings),
    ):
        query = query.float()
        positive = (query * partner.float()).sum(1)
        similarity = query @ candidates.float().T
        hinges.append(F.margin_contrast(positive, similarity, margin, scale, negatives))
    return torch.stack(hinges)


def anchor_token_term(image: Tokens, text: Tokens, scale: float, has_cls: bool) -> Tensor:
    """The log-sum-exp over patches and words (Eq. 1), (B,).

    Args:
        image: tokens of the images.
        text: tokens of the texts, [CLS] first.
        scale: λ of the term.
        has_cls: whether the first token of an image is [CLS].
    """
    patches, patch_mask = image.without_cls(has_cls)
    words, word_mask = text.without_cls()
    return F.anchor_log_sum_exp(patches, words, scale, patch_mask, word_mask)
