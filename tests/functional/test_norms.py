"""L2 norms of long, short and zero vectors."""

import pytest
import torch
from literal_equations import random_tokens
from torch.autograd import gradcheck

from xmodal import functional as F


def test_a_vector_is_divided_by_its_norm():
    x = random_tokens(3, 4, 5)
    for actual, vector in zip(F.l2_normalize(x).flatten(0, 1), x.flatten(0, 1), strict=True):
        length = sum(value**2 for value in vector.tolist()) ** 0.5
        torch.testing.assert_close(actual, vector / length)


def test_gradients_of_the_norm_are_right():
    assert gradcheck(F.l2_normalize, random_tokens(2, 3, 4).requires_grad_())


@pytest.mark.parametrize('dtype', [torch.float64, torch.float32, torch.bfloat16])
def test_a_zero_vector_stays_zero_and_gets_no_gradient(dtype):
    x = random_tokens(2, 3, 4)
    x[0, 1] = 0
    x = x.to(dtype).requires_grad_()
    actual = F.l2_normalize(x)
    (actual * random_tokens(2, 3, 4, seed=1)).sum().backward()
    assert (actual[0, 1] == 0).all() and (x.grad[0, 1] == 0).all()
    assert actual.isfinite().all() and x.grad.isfinite().all()
    assert x.grad[0, 0].any() and x.grad[1].any()


def test_norms_of_half_precision_are_taken_in_float32():
    # Squares of these leave the range of float16 at either end.
    x = torch.tensor([[3e4, 4e4], [3e-5, 4e-5]], dtype=torch.float16)
    expected = x.double() / x.double().norm(dim=-1, keepdim=True)
    torch.testing.assert_close(F.l2_normalize(x).double(), expected, atol=1e-6, rtol=1e-5)
