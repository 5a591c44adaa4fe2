"""Eqs. 3-6 of ACE-RPE against literal float64 loops."""

import math

import pytest
import torch
from literal_equations import (
    DELTA,
    FORMATS,
    TAU,
    literal_distance,
    literal_shrink,
    random_similarity,
    random_tokens,
    tolerance,
)
from torch.autograd import gradcheck

from xmodal import functional as F


@pytest.mark.parametrize('dtype', FORMATS)
@pytest.mark.parametrize(('patches', 'words', 'width', 'groups'), [(7, 3, 12, 4), (2, 5, 9, 1)])
def test_multi_group_similarity_is_the_cosine_of_each_group(patches, words, width, groups, dtype):
    image, text = random_tokens(2, patches, width, seed=1), random_tokens(2, words, width, seed=2)
    expected = torch.empty(2, patches, words, groups, dtype=torch.float64)
    run = width // groups
    for b in range(2):
        for m in range(patches):
            for n in range(words):
                for g in range(groups):
                    x, y = (t[g * run : (g + 1) * run] for t in (image[b, m], text[b, n]))
                    expected[b, m, n, g] = (x @ y) / (x.norm() * y.norm())
    actual = F.multi_group_similarity(image.to(dtype), text.to(dtype), groups)
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.double(), expected, atol=tolerance(dtype), rtol=0)


def test_one_group_is_the_plain_cosine():
    image, text = random_tokens(2, 5, 6), random_tokens(2, 3, 6, seed=1)
    expected = torch.cosine_similarity(image[:, :, None], text[:, None], dim=-1)
    torch.testing.assert_close(F.multi_group_similarity(image, text, 1)[..., 0], expected)


def test_gradient_of_the_similarity_is_right():
    image = random_tokens(1, 3, 6).requires_grad_()
    text = random_tokens(1, 2, 6, seed=1).requires_grad_()
    assert gradcheck(lambda x, y: F.multi_group_similarity(x, y, 2), (image, text))


def test_a_token_of_zeros_has_similarity_zero_and_a_finite_gradient():
    image = torch.zeros(1, 2, 4, requires_grad=True)
    similarity = F.multi_group_similarity(image, torch.ones(1, 3, 4), 2)
    similarity.sum().backward()
    assert (similarity == 0).all()
    assert image.grad.isfinite().all()


EDGES = [-1.0, 0.0, DELTA - 1e-2, DELTA - 1e-5, DELTA, DELTA + 1e-5, 0.2, 0.9, 1.0]


@pytest.mark.parametrize('dtype', FORMATS)
def test_soft_shrink_is_equation_4(dtype):
    similarity = torch.tensor(EDGES, dtype=dtype)
    expected = [literal_shrink(s) for s in similarity.double().tolist()]
    expected = torch.tensor(expected, dtype=torch.float64)
    actual = F.soft_shrink(similarity).double()
    torch.testing.assert_close(actual[:3], expected[:3], atol=1e-12, rtol=1e-4)
    torch.testing.assert_close(actual[4:], expected[4:], atol=1e-7, rtol=1e-5)
    # τ = 1e4 turns the last digit of float32 into 4e-5 of Ŝ.
    torch.testing.assert_close(actual[3], expected[3], atol=1e-12, rtol=1e-4)


def test_gradient_of_soft_shrink_is_right_on_both_sides_of_the_threshold():
    similarity = torch.tensor([-0.5, 0.0, 0.03, 0.06, 0.9], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s: F.soft_shrink(s, tau=20.0), similarity)


@pytest.mark.parametrize('dtype', [*FORMATS, torch.bfloat16, torch.float16])
def test_soft_shrink_has_finite_gradients_far_above_the_threshold(dtype):
    similarity = torch.tensor(EDGES, dtype=dtype, requires_grad=True)
    F.soft_shrink(similarity).sum().backward()
    assert similarity.grad.isfinite().all()


def test_anchors_are_where_the_shrunk_similarity_reaches_delta():
    similarity = random_similarity(2, 4, 3, 2)
    actual = F.anchor_mask(similarity)
    assert actual.dtype == torch.bool
    expected = [literal_shrink(s) >= DELTA for s in similarity.flatten().tolist()]
    assert actual.flatten().tolist() == expected


@pytest.mark.parametrize('dtype', FORMATS)
def test_anchor_distance_is_one_over_the_shrunk_similarity(dtype):
    similarity = torch.cat([torch.tensor(EDGES, dtype=dtype), random_similarity(50, dtype=dtype)])
    expected = [literal_distance(s) for s in similarity.double().tolist()]
    actual = F.anchor_distance(similarity)
    assert actual.dtype == dtype
    torch.testing.assert_close(
        actual.double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-4, atol=1e-5
    )


def test_a_distance_above_two_over_delta_is_infinite():
    gap = math.log(2) / TAU
    similarity = torch.tensor([DELTA - 0.99 * gap, DELTA - 1.01 * gap], dtype=torch.float64)
    actual = F.anchor_distance(similarity)
    assert 1.9 / DELTA < actual[0] < 2 / DELTA
    assert actual[1] == math.inf


@pytest.mark.parametrize('dtype', [*FORMATS, torch.bfloat16, torch.float16])
def test_anchor_distance_has_finite_gradients_everywhere(dtype):
    similarity = torch.tensor(EDGES, dtype=dtype, requires_grad=True)
    distance = F.anchor_distance(similarity)
    distance.masked_fill(distance.isinf(), 0).sum().backward()
    assert similarity.grad.isfinite().all()


def test_gradient_of_the_distance_stops_below_delta():
    similarity = torch.tensor([DELTA - 1e-5, 0.5], dtype=torch.float64, requires_grad=True)
    F.anchor_distance(similarity).sum().backward()
    torch.testing.assert_close(similarity.grad, torch.tensor([0.0, -4.0], dtype=torch.float64))


def test_one_over_the_shrunk_similarity_has_the_gradient_below_delta():
    similarity = torch.tensor([DELTA - 1e-5, 0.5], dtype=torch.float64, requires_grad=True)
    (1 / F.soft_shrink(similarity)).sum().backward()
    expected = [-TAU * literal_distance(DELTA - 1e-5), -1 / 0.5**2]
    assert similarity.grad.tolist() == pytest.approx(expected)
