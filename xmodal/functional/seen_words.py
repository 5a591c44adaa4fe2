"""The words of a caption compared with what each of them sees of the image."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from xmodal.functional.anchors import unit_groups
from xmodal.functional.precision import full_precision


@full_precision
def seen_words(
    patches: Tensor,
    words: Tensor,
    groups: int,
    patch_mask: Tensor,
    word_mask: Tensor,
    temperature: float,
) -> Tensor:
    """How similar what a word sees is to each word of its caption, row by row.

    Word j looks at the patches by S, the mean of the S_G (ACE-RPE, Eq. 3), and sees
    o_j = Σ_m softmax_m(S_jm / τ) p_m; the result is cos(o_j, w_k) / τ. It is the cross-attention
    of MGCA (Wang et al., NeurIPS 2022, Eqs. 4-6) without weights of its own.

    Args:
        patches: of B images, (B, M, D), without [CLS].
        words: of B captions, (B, N, D), without [CLS].
        groups: G; in each, a patch and a word have length 1.
        patch_mask: True for real patches, (B, M) bool; each image has one.
        word_mask: True for real words, (B, N) bool.
        temperature: τ.

    Returns:
        (B, N, N), −inf for padding j or k.
    """
    patches, words = unit_groups(patches, groups), unit_groups(words, groups)
    attention = words @ patches.mT / (groups * temperature)
    attention = attention.masked_fill(~patch_mask[:, None], -torch.inf).softmax(-1)
    seen = normalize(attention @ patches, dim=-1)
    similarity = seen @ normalize(words, dim=-1).mT / temperature
    is_pair = word_mask[:, :, None] & word_mask[:, None]
    return similarity.masked_fill(~is_pair, -torch.inf)
