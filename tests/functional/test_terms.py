"""Eqs. 8-12 of ACE-RPE against the materialised embedding."""

import math

import pytest
import torch
from literal_equations import FORMATS, padding, random_similarity, random_tokens, tolerance
from torch.autograd import gradcheck

from xmodal import functional as F


def paths(dtype=torch.float64, groups=3):
    mask = padding(5, [5, 3])
    distance = F.anchor_distance(random_similarity(2, 7, 5, groups) - 0.5)
    return F.relative_distance(distance.to(dtype), (2, 3), mask), mask


def test_unreached_pairs_are_zero_by_default():
    distance, _ = paths()
    filled = F.fill_unreachable(distance)
    assert distance.isinf().any() and distance.isfinite().any()
    assert filled.equal(torch.where(distance.isinf(), 0, distance))


def test_unreached_pairs_can_be_far():
    distance, _ = paths()
    filled = F.fill_unreachable(distance, 'far', 23.4)
    assert filled.equal(torch.where(distance.isinf(), 23.4, distance))


def test_unreached_pairs_can_have_a_learned_vector():
    distance, _ = paths()
    filled = F.fill_unreachable(distance, 'learned')
    weight = random_tokens(1, 6, 4, seed=5)[0]
    expected = F.fill_unreachable(distance) @ weight[:3] + distance.isinf().double() @ weight[3:]
    assert filled.shape[-1] == 6
    torch.testing.assert_close(filled @ weight, expected)


@pytest.mark.parametrize('null', ['zero', 'far', 'learned'])
def test_an_unreached_pair_has_gradient_zero(null):
    distance = torch.tensor([2.0, math.inf]).view(1, 1, 2, 1).requires_grad_()
    F.fill_unreachable(distance, null, 23.4).sum().backward()
    assert distance.grad.flatten().tolist() == [1, 0]


@pytest.mark.parametrize('dtype', FORMATS)
def test_contextual_means_give_those_of_the_materialised_embedding(dtype):
    distance, text_mask = paths()
    filled, weight = F.fill_unreachable(distance, 'far', 23.4), random_tokens(1, 3, 8, seed=5)[0]
    image_mask = padding(7, [7, 6])
    embedding = filled[..., None, :] @ weight  # (B, M, N, 1, D)
    image_sum, text_sum = torch.zeros(2, 7, 8).double(), torch.zeros(2, 5, 8).double()
    for b in range(2):
        for m in range(7):
            for n in range(5):
                image_sum[b, m] += embedding[b, m, n, 0] * text_mask[b, n] / text_mask[b].sum()
                text_sum[b, n] += embedding[b, m, n, 0] * image_mask[b, m] / image_mask[b].sum()
    actual = F.contextual_means(filled.to(dtype), image_mask, text_mask)
    for mean, expected in zip(actual, (image_sum, text_sum), strict=True):
        assert mean.dtype == dtype
        term = (mean @ weight.to(dtype)).double()
        torch.testing.assert_close(term, expected, atol=1e-4, rtol=tolerance(dtype))


def test_contextual_means_without_masks_are_plain_means():
    filled = F.fill_unreachable(paths()[0])
    image, text = F.contextual_means(filled)
    torch.testing.assert_close(image, filled.mean(2))
    torch.testing.assert_close(text, filled.mean(1))


@pytest.mark.parametrize('dtype', FORMATS)
def test_value_term_is_the_weighted_sum_of_the_materialised_embedding(dtype):
    filled, weight = F.fill_unreachable(paths()[0]), random_tokens(1, 3, 8, seed=5)[0]
    attention = random_tokens(2, 4 * 7, 5, seed=6).view(2, 4, 7, 5).softmax(-1)
    embedding = (filled @ weight).unflatten(-1, (4, 2))  # (B, M, N, H, D / H)
    expected = torch.zeros(2, 7, 4, 2, dtype=torch.float64)
    for b in range(2):
        for h in range(4):
            for i in range(7):
                for j in range(5):
                    expected[b, i, h] += attention[b, h, i, j] * embedding[b, i, j, h]
    actual = F.value_term(attention.to(dtype), filled.to(dtype), weight.to(dtype))
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.double(), expected.flatten(2), atol=1e-4, rtol=1e-5)


def test_value_term_takes_the_text_as_the_queries():
    filled, weight = (
        F.fill_unreachable(paths()[0]).transpose(1, 2),
        random_tokens(1, 3, 8, seed=5)[0],
    )
    attention = random_tokens(2, 4 * 5, 7, seed=6).view(2, 4, 5, 7).softmax(-1)
    embedding = (filled @ weight).unflatten(-1, (4, 2))
    expected = torch.einsum('bhij,bijhd->bihd', attention, embedding).flatten(2)
    torch.testing.assert_close(F.value_term(attention, filled, weight), expected)


def test_gradients_of_the_value_term_and_what_is_stored_for_them():
    filled = F.fill_unreachable(paths()[0]).double().transpose(1, 2)
    weight = random_tokens(1, 3, 8, torch.float64, seed=5)[0]
    attention = random_tokens(2, 4 * 5, 7, torch.float64, seed=6).view(2, 4, 5, 7).softmax(-1)
    inputs = [x.requires_grad_() for x in (attention, filled.detach(), weight)]
    torch.autograd.gradcheck(F.value_term, inputs)
    stored = []
    with torch.autograd.graph.saved_tensors_hooks(stored.append, lambda x: x):
        F.value_term(*inputs)
    large = [x.untyped_storage().data_ptr() for x in stored if x.numel() >= filled.numel()]
    assert set(large) == {x.untyped_storage().data_ptr() for x in inputs[:2]}  # no copies


@pytest.mark.parametrize('dtype', FORMATS)
def test_bias_term_is_the_projected_embedding(dtype):
    filled, weight = F.fill_unreachable(paths()[0]), random_tokens(1, 3, 8, seed=5)[0]
    projection = random_tokens(1, 1, 8, seed=6)[0, 0]
    actual = F.bias_term(filled.to(dtype), weight.to(dtype), projection.to(dtype))
    assert actual.dtype == dtype
    expected = (filled[..., None, :] @ weight @ projection)[..., 0]
    torch.testing.assert_close(actual.double(), expected, atol=1e-4, rtol=1e-5)


def test_gradients_of_the_terms_are_right():
    filled = F.fill_unreachable(paths()[0][:1]).requires_grad_()
    weight = random_tokens(1, 3, 4, seed=5)[0].requires_grad_()
    projection = random_tokens(1, 1, 4, seed=6)[0, 0].requires_grad_()
    attention = random_tokens(1, 2 * 7, 5, seed=6).view(1, 2, 7, 5).requires_grad_()
    mask = padding(5, [3])
    assert gradcheck(lambda p: F.contextual_means(p, None, mask), filled)
    assert gradcheck(F.value_term, (attention, filled, weight))
    assert gradcheck(F.bias_term, (filled, weight, projection))
