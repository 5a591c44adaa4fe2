"""Eqs. 1 and 2 of ACE-RPE against literal float64 loops."""

import math

import pytest
import torch
from literal_equations import FORMATS, padding, random_similarity, random_tokens, tolerance
from torch.autograd import gradcheck

from xmodal import functional as F


@pytest.mark.parametrize('dtype', FORMATS)
@pytest.mark.parametrize('scale', [2.0, 10.0, 200.0])
def test_anchor_log_sum_exp_leaves_out_padding(scale, dtype):
    patches, words = random_tokens(2, 6, 6), random_tokens(2, 4, 6, seed=1)
    patch_mask, word_mask = padding(6, [4, 6]), padding(4, [4, 2])
    expected = []
    for b in range(2):
        cosines = [
            torch.cosine_similarity(patches[b, m], words[b, n], dim=0).item()
            for m in range(6)
            for n in range(4)
            if patch_mask[b, m] and word_mask[b, n]
        ]
        expected.append(math.log(math.fsum(math.exp(scale * c) for c in cosines)) / scale)
    masks = patch_mask, word_mask
    actual = F.anchor_log_sum_exp(patches.to(dtype), words.to(dtype), scale, *masks)
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.tolist(), expected, atol=tolerance(dtype), rtol=0)


def test_gradient_of_anchor_log_sum_exp_is_right():
    patches = random_tokens(1, 3, 3).requires_grad_()
    words = random_tokens(1, 3, 3, seed=1).requires_grad_()
    masks = padding(3, [2]), padding(3, [2])
    assert gradcheck(lambda x, y: F.anchor_log_sum_exp(x, y, 2.0, *masks), (patches, words))


def test_a_text_without_words_gives_zero():
    patches = random_tokens(2, 3, 3).requires_grad_()
    words = random_tokens(2, 3, 3, seed=1).requires_grad_()
    actual = F.anchor_log_sum_exp(patches, words, 2.0, padding(3, [3, 3]), padding(3, [0, 2]))
    actual.sum().backward()
    assert actual[0] == 0 and actual[1] != 0
    for x in (patches, words):
        assert (x.grad[0] == 0).all() and x.grad[1].isfinite().all()


@pytest.mark.parametrize('dtype', FORMATS)
def test_margin_contrast_is_equation_2(dtype):
    positive, negatives = random_similarity(6), random_similarity(6, 9, seed=1)
    positive[0], negatives[0] = 1.0, -1.0  # closes the hinge
    mask = random_similarity(6, 9, seed=2) > 0
    delta, scale = 0.05, 20.0
    expected = []
    for f, row, real in zip(positive.tolist(), negatives.tolist(), mask.tolist(), strict=True):
        total = math.fsum(math.exp(scale * z) for z, r in zip(row, real, strict=True) if r)
        expected.append(-min(0.0, f - delta - math.log(total) / scale))
    actual = F.margin_contrast(positive.to(dtype), negatives.to(dtype), delta, scale, mask)
    assert actual.dtype == dtype
    assert actual[0] == 0
    torch.testing.assert_close(actual.tolist(), expected, atol=tolerance(dtype), rtol=0)


def test_margin_contrast_without_a_mask_counts_all_negatives():
    positive, negatives = random_similarity(4), random_similarity(4, 5, seed=1)
    everything = torch.ones(4, 5, dtype=torch.bool)
    torch.testing.assert_close(
        F.margin_contrast(positive, negatives, 0.05, 2.0),
        F.margin_contrast(positive, negatives, 0.05, 2.0, everything),
    )


def test_gradient_of_an_open_hinge_is_right():
    positive = random_similarity(3).requires_grad_()
    negatives = random_similarity(3, 5, seed=1).requires_grad_()
    mask = torch.tensor([[True, False, True, True, False]] * 3)
    assert gradcheck(lambda p, n: F.margin_contrast(p, n, 0.05, 2.0, mask), (positive, negatives))


@pytest.mark.parametrize('count', [0, 3])
def test_a_sample_without_negatives_has_loss_zero(count):
    positive = torch.zeros(2, requires_grad=True)
    negatives = torch.ones(2, count, requires_grad=True)
    actual = F.margin_contrast(
        positive, negatives, 0.05, 2.0, torch.zeros(2, count, dtype=torch.bool)
    )
    actual.sum().backward()
    assert actual.tolist() == [0, 0]
    assert positive.grad.tolist() == [0, 0]
    assert (negatives.grad == 0).all()
