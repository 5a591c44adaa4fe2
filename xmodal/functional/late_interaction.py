"""Images and texts compared word by word, by the similarities of anchors."""

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from xmodal.functional.precision import full_precision


@full_precision
def late_interaction(
    patches: Tensor, words: Tensor, groups: int, patch_mask: Tensor, word_mask: Tensor
) -> Tensor:
    """The mean over a text's words of the similarity to the nearest patch of an image.

    Late interaction (FILIP, Yao et al., 2022, Eqs. 4-5) from the side of the text, where a patch
    and a word are as similar as the mean of their S_G (ACE-RPE, Eq. 3) over the groups.

    Args:
        patches: of I images, (I, M, D), without [CLS].
        words: of T texts, (T, N, D), without [CLS].
        groups: G.
        patch_mask: True for real patches, (I, M) bool; each image has one.
        word_mask: True for real words, (T, N) bool.

    Returns:
        (I, T), 0 for a text without words.
    """
    patches, words = (
        normalize(tokens.unflatten(-1, (groups, -1)), dim=-1).flatten(2)
        for tokens in (patches, words)
    )
    similarity = torch.einsum('imd,tnd->itmn', patches, words) / groups
    nearest = similarity.masked_fill(~patch_mask[:, None, :, None], -math.inf).amax(2)
    return (nearest * word_mask).sum(2) / word_mask.sum(1).clamp(min=1)
