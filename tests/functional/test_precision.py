"""The equations in half precision and under autocast."""

import pytest
import torch
from literal_equations import padding, random_similarity, random_tokens

from xmodal import functional as F


def every_function(image, text, weight, projection, attention):
    mask = padding(5, [5, 3])
    similarity = F.multi_group_similarity(image, text, 3)
    distance = F.relative_distance(F.anchor_distance(similarity), (2, 3), mask)
    filled = F.fill_unreachable(distance, 'far', 23.4)
    yield similarity
    yield F.soft_shrink(similarity)
    yield filled
    yield from F.contextual_means(filled, None, mask)
    yield F.value_term(attention, filled, weight)
    yield F.bias_term(filled, weight, projection)
    yield F.anchor_log_sum_exp(image, text, 10.0, padding(7, [7, 7]), mask)
    yield F.margin_contrast(image[:, 0, 0], text[:, :, 0], 0.05, 20.0, mask)


def inputs(dtype):
    return [
        random_tokens(2, 7, 12, dtype),
        random_tokens(2, 5, 12, dtype, seed=1),
        random_tokens(1, 3, 12, dtype, seed=2)[0],
        random_tokens(1, 1, 12, dtype, seed=3)[0, 0],
        random_tokens(2, 4 * 7, 5, dtype, seed=4).view(2, 4, 7, 5).softmax(-1),
    ]


@pytest.mark.parametrize('autocast', [torch.bfloat16, torch.float16])
def test_autocast_changes_nothing(autocast):
    expected = list(every_function(*inputs(torch.float32)))
    with torch.autocast('cpu', autocast):
        actual = list(every_function(*inputs(torch.float32)))
    for x, y in zip(actual, expected, strict=True):
        assert x.dtype == torch.float32
        assert x.equal(y)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_inputs_are_computed_in_float32_with_finite_gradients(dtype):
    half = [x.requires_grad_() for x in inputs(dtype)]
    exact = [x.detach().float().requires_grad_() for x in half]  # paths keep their anchors then
    expected = list(every_function(*exact))
    with torch.autocast('cpu', torch.bfloat16):
        actual = list(every_function(*half))
    for x, y in zip(actual, expected, strict=True):
        assert x.dtype == torch.float32
        assert x.equal(y)
    sum(x.sum() for x in actual).backward()
    assert all(x.grad.isfinite().all() for x in half)


def test_arguments_can_be_given_by_name():
    similarity = random_similarity(3)
    assert F.soft_shrink(similarity=similarity).equal(F.soft_shrink(similarity))
