"""Norms where runs are long, short and zero."""

import pytest
import torch
from literal_equations import random_tokens
from torch.autograd import gradcheck

from xmodal import functional as F

NORMS = [(F.l2_normalize, 2), (F.l1_normalize, 1)]


@pytest.mark.parametrize(('normalized', 'order'), NORMS)
@pytest.mark.parametrize('dim', [-1, 0, 1])
def test_each_run_is_divided_by_its_norm(normalized, order, dim):
    x = random_tokens(3, 4, 5)
    actual = normalized(x, dim).movedim(dim, -1)
    for run, expected in zip(actual.flatten(0, 1), x.movedim(dim, -1).flatten(0, 1), strict=True):
        length = sum(abs(number) ** order for number in expected.tolist()) ** (1 / order)
        torch.testing.assert_close(run, expected / length)


@pytest.mark.parametrize(('normalized', 'order'), NORMS)
def test_gradients_of_the_norms_are_right(normalized, order):
    assert gradcheck(normalized, random_tokens(2, 3, 4).requires_grad_())


@pytest.mark.parametrize(('normalized', 'order'), NORMS)
@pytest.mark.parametrize('dtype', [torch.float64, torch.float32, torch.bfloat16])
def test_a_run_of_zeros_stays_zero_and_gets_no_gradient(normalized, order, dtype):
    x = random_tokens(2, 3, 4)
    x[0, 1] = 0
    x = x.to(dtype).requires_grad_()
    actual = normalized(x)
    (actual * random_tokens(2, 3, 4, seed=1)).sum().backward()
    assert (actual[0, 1] == 0).all() and (x.grad[0, 1] == 0).all()
    assert actual.isfinite().all() and x.grad.isfinite().all()
    assert x.grad[0, 0].any() and x.grad[1].any()


@pytest.mark.parametrize(('normalized', 'order'), NORMS)
def test_norms_of_half_precision_are_taken_in_float32(normalized, order):
    # Squares of these leave the range of float16 at either end.
    x = torch.tensor([[3e4, 4e4], [3e-5, 4e-5]], dtype=torch.float16)
    expected = x.double() / x.double().norm(order, dim=-1, keepdim=True)
    torch.testing.assert_close(normalized(x).double(), expected, atol=1e-6, rtol=1e-5)
