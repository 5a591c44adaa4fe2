"""The two ways to write a product, and the projection of squared differences."""

import pytest
import torch
from torch.nn.functional import linear

from xmodal.models.sgraf.difference import ProjectedDifference
from xmodal.models.sgraf.products import batched_product, fastest_dtype, product


@pytest.mark.parametrize('shape', [(7, 5), (2, 3, 5), (1, 5), (4, 1, 2, 5)])
@pytest.mark.parametrize('has_bias', [False, True])
def test_a_product_does_not_depend_on_whether_there_is_a_graph(shape, has_bias):
    x, weight, bias = torch.randn(shape), torch.randn(6, 5), torch.randn(6) if has_bias else None
    expected = linear(x.double(), weight.double(), bias if bias is None else bias.double())
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            actual = product(x, weight, bias)
            torch.testing.assert_close(actual.double(), expected, atol=1e-6, rtol=1e-5)
            # Of a transposed view.
            actual = product(x.mT.contiguous().mT, weight.T.contiguous().T, bias)
            torch.testing.assert_close(actual.double(), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize('batch', [1, 3])
def test_a_batched_product_multiplies_each_pair(batch):
    x, y = torch.randn(batch, 4, 3), torch.randn(batch, 3, 5)
    with torch.no_grad():
        for left, right, actual in zip(x, y, batched_product(x, y), strict=True):
            torch.testing.assert_close(actual, left @ right)


@pytest.mark.parametrize('words', [(4, 6), (3, 4, 6)])
def test_values_and_gradients_of_the_projected_difference_are_right(words):
    sizes = (3, 4, 5), (3, 5, 6), words, (7, 6), (7,)
    inputs = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]
    attention, regions, word_tokens, weight, bias = inputs
    expected = linear((attention @ regions - word_tokens) ** 2, weight, bias)
    torch.testing.assert_close(ProjectedDifference.apply(*inputs), expected)
    assert torch.autograd.gradcheck(ProjectedDifference.apply, inputs)


@pytest.mark.parametrize('has_kernels', [True, False])
def test_half_precision_is_float32_where_a_cpu_has_no_kernels_for_it(monkeypatch, has_kernels):
    for name in ('_is_mkldnn_bf16_supported', '_is_mkldnn_fp16_supported'):
        monkeypatch.setattr(torch.ops.mkldnn, name, lambda: has_kernels, raising=False)
    for dtype in (torch.bfloat16, torch.float16):
        expected = dtype if has_kernels else torch.float32
        assert fastest_dtype(dtype, torch.device('cpu')) == expected
        assert fastest_dtype(dtype, torch.device('cuda')) == dtype
    assert fastest_dtype(torch.float32, torch.device('cpu')) == torch.float32
