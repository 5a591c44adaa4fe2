"""Late interaction against loops over images, texts, patches, words and groups."""

import pytest
import torch
from literal_equations import FORMATS, padding, random_tokens, tolerance
from torch.autograd import gradcheck

from xmodal import functional as F


def similarity(patch, word, groups):
    pairs = zip(patch.chunk(groups), word.chunk(groups), strict=True)
    return sum(torch.cosine_similarity(p, w, dim=0).item() for p, w in pairs) / groups


@pytest.mark.parametrize('dtype', FORMATS)
@pytest.mark.parametrize('groups', [1, 3])
def test_a_text_is_compared_by_the_nearest_patch_of_each_word(groups, dtype):
    patches, words = random_tokens(2, 4, 6), random_tokens(3, 5, 6, seed=1)
    patch_mask, word_mask = padding(4, [4, 3]), padding(5, [5, 2, 4])
    expected = torch.zeros(2, 3, dtype=torch.float64)
    for i in range(2):
        for t in range(3):
            nearest = [
                max(similarity(patches[i, m], words[t, n], groups) for m in range(length))
                for length in [int(patch_mask[i].sum())]
                for n in range(word_mask[t].sum())
            ]
            expected[i, t] = sum(nearest) / len(nearest)
    actual = F.late_interaction(patches.to(dtype), words.to(dtype), groups, patch_mask, word_mask)
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.double(), expected, atol=tolerance(dtype), rtol=0)


def test_gradients_are_right_and_padding_has_none():
    patches = random_tokens(2, 3, 4).requires_grad_()
    words = random_tokens(2, 3, 4, seed=1).requires_grad_()
    masks = padding(3, [3, 2]), padding(3, [3, 1])
    assert gradcheck(lambda p, w: F.late_interaction(p, w, 2, *masks), (patches, words))
    F.late_interaction(patches, words, 2, *masks).sum().backward()
    assert (patches.grad[1, 2] == 0).all() and (words.grad[1, 1:] == 0).all()


def test_a_text_without_words_is_similar_to_nothing():
    patches = random_tokens(1, 3, 4).requires_grad_()
    masks = padding(3, [3]), torch.zeros(1, 2, dtype=torch.bool)
    found = F.late_interaction(patches, random_tokens(1, 2, 4, seed=1), 2, *masks)
    found.sum().backward()
    assert (found == 0).all() and patches.grad.isfinite().all()
