"""Products by oneDNN and by MKL, the layers that use them, and the squared differences of SGRAF."""

from copy import deepcopy
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import linear, normalize
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from xmodal import products
from xmodal.models.sgraf import difference
from xmodal.models.sgraf.difference import NormalizedDifference
from xmodal.products import Linear, batched_difference, batched_product, fastest_dtype, product
from xmodal.registry import MODELS

LINEAR_POINTWISE = 'mkldnn::_linear_pointwise'


@pytest.fixture(params=[True, False], ids=['oneDNN', 'MKL'])
def by_onednn(request, monkeypatch):
    """Every product by oneDNN, whatever its size and the processor; or none."""
    if request.param and not products.HAS_ONEDNN:
        pytest.skip('this PyTorch has no oneDNN')
    monkeypatch.setattr(products, 'prefers_onednn', lambda: request.param)
    monkeypatch.setattr(products, 'SMALLEST', 0)
    return request.param


def calls_of(function):
    """The names of the operators that a call runs."""
    with torch.profiler.profile() as profile:
        function()
    return {event.key for event in profile.key_averages()}


@pytest.mark.parametrize('shape', [(7, 5), (2, 3, 5), (1, 5), (4, 1, 2, 5)])
@pytest.mark.parametrize('has_bias', [False, True])
@pytest.mark.parametrize('is_transposed', [False, True])
def test_values_and_gradients_of_a_product_are_those_of_float64(
    by_onednn, shape, has_bias, is_transposed
):
    x, weight, bias = torch.randn(shape), torch.randn(6, 5), torch.randn(6) if has_bias else None
    if is_transposed:
        x, weight = x.mT.contiguous().mT, weight.T.contiguous().T
    inputs = [t.requires_grad_() for t in (x, weight, bias) if t is not None]
    doubles = [t.detach().double().requires_grad_() for t in inputs]
    expected, actual = linear(*doubles), product(*inputs)
    output_gradient = torch.randn_like(actual)
    compared = zip(
        (actual, *torch.autograd.grad(actual, inputs, output_gradient)),
        (expected, *torch.autograd.grad(expected, doubles, output_gradient.double())),
        strict=True,
    )
    for ours, reference in compared:
        torch.testing.assert_close(ours.double(), reference, atol=1e-5, rtol=1e-5)


def test_a_gradient_of_a_gradient_is_right(by_onednn):
    x, weight = torch.randn(4, 5, requires_grad=True), torch.randn(6, 5, requires_grad=True)

    def penalty(multiply, x, weight):
        (slope,) = torch.autograd.grad(multiply(x, weight).pow(3).sum(), x, create_graph=True)
        return torch.autograd.grad(slope.pow(2).sum(), weight)[0]

    expected = penalty(linear, x.double(), weight.double())
    actual, largest = penalty(product, x, weight).double(), expected.abs().max()
    torch.testing.assert_close(actual / largest, expected / largest, rtol=0, atol=1e-5)


class StridesOfProducts(TorchDispatchMode):
    """Remembers the strides of the matrices that oneDNN is given."""

    def __init__(self):
        super().__init__()
        self.strides = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if str(function).startswith(LINEAR_POINTWISE.replace('::', '.')):
            self.strides += [matrix.stride() for matrix in args[:2]]
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize('by_onednn', [True], indirect=True)
@pytest.mark.parametrize('reduce', [torch.sum, partial(torch.sum, dim=0)])
def test_an_expanded_gradient_is_made_out_before_it_is_multiplied(by_onednn, reduce):
    x, weight = torch.randn(4, 5, requires_grad=True), torch.randn(6, 5, requires_grad=True)
    y = reduce(product(x, weight)).sum()
    with StridesOfProducts() as products_of_gradients:
        y.backward()
    assert len(products_of_gradients.strides) == 4
    assert all(0 not in strides for strides in products_of_gradients.strides)


@pytest.mark.parametrize('batch', [1, 3])
def test_a_batched_product_multiplies_each_pair(by_onednn, batch):
    x, y = torch.randn(batch, 4, 3), torch.randn(batch, 3, 5)
    for left, right, actual in zip(x, y, batched_product(x, y), strict=True):
        torch.testing.assert_close(actual, left @ right)


def test_float32_on_a_processor_that_prefers_it_is_given_to_onednn(by_onednn):
    x, layer = torch.randn(2, 3, 5, requires_grad=True), Linear(5, 6)
    assert (LINEAR_POINTWISE in calls_of(lambda: layer(x).sum().backward())) == by_onednn
    assert LINEAR_POINTWISE not in calls_of(lambda: layer.double()(x.double()))


def test_autocast_decides_the_type_of_a_layer(by_onednn):
    with torch.autocast('cpu', torch.bfloat16):
        assert Linear(5, 6)(torch.randn(3, 5)).dtype == torch.bfloat16


def test_a_small_product_is_left_to_pytorch(monkeypatch):
    monkeypatch.setattr(products, 'prefers_onednn', lambda: True)
    rows = products.SMALLEST // 64**2
    for count, is_expected in ((rows - 1, False), (rows, products.HAS_ONEDNN)):
        x, weight = torch.randn(count, 64), torch.randn(64, 64)
        names = calls_of(lambda x=x, weight=weight: product(x, weight))
        assert (LINEAR_POINTWISE in names) == is_expected


def test_the_output_of_a_layer_may_be_changed_in_place(by_onednn):
    x, layer = torch.randn(2, 3, 5), Linear(5, 6)
    expected = torch.autograd.grad(linear(x, layer.weight, layer.bias).relu().sum(), layer.weight)
    actual = torch.autograd.grad(layer(x).relu_().sum(), layer.weight)
    torch.testing.assert_close(actual, expected)


def test_linear_layers_of_a_built_module_are_fast_also_a_librarys(by_onednn):
    adapter = MODELS.build(dict(type='TokenAdapter', in_dims=5, embed_dims=6))
    encoder = MODELS.build(
        dict(
            type='BertTextEncoder',
            config=dict(
                vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                intermediate_size=8,
            ),
        )
    )  # fmt: skip
    for module in (adapter, deepcopy(encoder)):
        layers = [part for part in module.modules() if isinstance(part, nn.Linear)]
        assert layers
        assert {type(layer) for layer in layers} == {Linear if by_onednn else nn.Linear}


def test_pytorch_counts_the_flops_of_a_product(by_onednn):
    with FlopCounterMode(display=False) as counter:
        Linear(5, 6)(torch.randn(2, 3, 5)).sum().backward()
    assert counter.get_total_flops() == 2 * 2 * (2 * 3 * 5 * 6)  # forward, and of the weight


@pytest.mark.parametrize('rows', [1, 3, 8, 2**20])  # one of four words, three, two images, all
@pytest.mark.parametrize('words', [(4, 6), (3, 4, 6)])
def test_values_and_gradients_of_the_normalized_difference_are_right(monkeypatch, words, rows):
    monkeypatch.setattr(difference, 'CPU_ROWS', rows)
    sizes = (3, 4, 5), (3, 5, 6), words, (7, 6), (7,)
    inputs = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]
    attention, regions, word_tokens, weight, bias = inputs
    expected = normalize(linear((attention @ regions - word_tokens) ** 2, weight, bias), dim=-1)
    torch.testing.assert_close(NormalizedDifference.apply(*inputs), expected)
    assert torch.autograd.gradcheck(NormalizedDifference.apply, inputs)


@pytest.mark.parametrize('shape', [(4, 6), (3, 4, 6)])
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_a_batched_difference_is_a_product_less_a_matrix(by_onednn, dtype, shape):
    x, y = (torch.randn(size).to(dtype) for size in ((3, 4, 5), (3, 5, 6)))
    exact = x.double() @ y.double()
    z = (exact[0] if len(shape) == 2 else exact).to(dtype)  # of a rounded product 0 would be left
    out = torch.empty_like(exact, dtype=dtype)
    expected = (exact - z.double()).to(dtype)
    torch.testing.assert_close(batched_difference(x, y, z, out), expected)
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize('has_kernels', [True, False])
def test_half_precision_is_float32_where_a_cpu_has_no_kernels_for_it(monkeypatch, has_kernels):
    for name in ('_is_mkldnn_bf16_supported', '_is_mkldnn_fp16_supported'):
        monkeypatch.setattr(torch.ops.mkldnn, name, lambda: has_kernels, raising=False)
    for dtype in (torch.bfloat16, torch.float16):
        expected = dtype if has_kernels else torch.float32
        assert fastest_dtype(dtype, torch.device('cpu')) == expected
        assert fastest_dtype(dtype, torch.device('cuda')) == dtype
    assert fastest_dtype(torch.float32, torch.device('cpu')) == torch.float32
