"""Images and texts compared word by word, by the similarities of anchors."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from xmodal.functional.anchors import unit_groups
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
    patches, words = unit_groups(patches, groups), unit_groups(words, groups)
    # Similarities of all pairs are by far the largest tensor: one product makes them, `max` reads
    # them once. One more dimension puts padding 3 farther from every word than any patch is.
    padding = -3.0 * (~patch_mask).to(patches)
    patches = torch.cat([patches, padding[..., None]], 2)
    words = pad(words / groups, (0, 1), value=1.0)
    similarity = words.flatten(0, 1) @ patches.flatten(0, 1).T
    nearest = similarity.unflatten(1, patches.shape[:2]).max(2).values  # (T · N, I)
    nearest = nearest.unflatten(0, words.shape[:2]) * word_mask[:, :, None]
    return nearest.sum(1).T / word_mask.sum(1).clamp(min=1)
