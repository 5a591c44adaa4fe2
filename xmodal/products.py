"""Matrix products by the fastest library that PyTorch has for the processor."""

import platform
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from mmengine.registry import Registry
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.flop_counter import register_flop_formula

HAS_ONEDNN = torch.backends.mkldnn.is_available()
# Below this many multiply-adds a call of oneDNN takes longer than the product.
SMALLEST = 2**21
# What PyTorch itself asks before it gives a product of these types to oneDNN.
_CHECKS = {
    torch.bfloat16: '_is_mkldnn_bf16_supported',
    torch.float16: '_is_mkldnn_fp16_supported',
}


@cache
def prefers_onednn() -> bool:
    """Whether oneDNN multiplies float32 matrices faster than MKL, which PyTorch calls.

    MKL has AVX-512 kernels for Intel's processors alone (270 against 118 GFLOP/s on a core of AMD's
    Zen 5). With AVX2 both are about as fast. The answer is of the kind of processor and not
    measured, so that a resumed run computes what the uninterrupted one does.
    """
    if not HAS_ONEDNN or not torch.backends.cpu.get_cpu_capability().startswith('AVX512'):
        return False
    processors = Path('/proc/cpuinfo')
    text = processors.read_text() if processors.exists() else platform.processor()
    return 'GenuineIntel' not in text


def fastest_dtype(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """The type that products asked for in ``dtype`` are computed in.

    A CPU without kernels of half precision would take ten times as long as in float32, which is
    more exact, too.
    """
    if device.type != 'cpu' or dtype not in _CHECKS:
        return dtype
    has_kernels = HAS_ONEDNN and getattr(torch.ops.mkldnn, _CHECKS[dtype])()
    return dtype if has_kernels else torch.float32


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b, as :func:`torch.nn.functional.linear`; oneDNN's where that is faster.

    Args:
        x: (…, K).
        weight: W, (N, K).
        bias: b, (N,).

    Returns:
        (…, N), in the type of x.
    """
    bias = None if bias is None else bias.to(x.dtype)
    return _multiply(x, weight.to(x.dtype), bias)


def batched_product(x: Tensor, y: Tensor) -> Tensor:
    """x y of each of B pairs of matrices, (B, P, K) and (B, K, N)."""
    return product(x[0], y[0].T)[None] if len(x) == 1 else x @ y


def batched_difference(x: Tensor, y: Tensor, z: Tensor, out: Tensor) -> Tensor:
    """x y − z of each of B pairs of matrices, without gradients.

    In half precision the product subtracts while it still has float32: it rounds once, and a pass
    of its own would take as long as the product.

    Args:
        x: (B, P, K).
        y: (B, K, N).
        z: (P, N) or (B, P, N).
        out: (B, P, N), which is written to and returned.
    """
    z = z.expand(len(x), -1, -1)
    if x.dtype != torch.float32:
        return torch.baddbmm(z, x, y, beta=-1, out=out)
    if not _is_for_onednn(x[0], y[0].T):
        return torch.bmm(x, y, out=out).sub_(z)
    for row, left, right, subtracted in zip(out, x, y, z, strict=True):
        torch.sub(product(left, right.T), subtracted, out=row)
    return out


class Linear(nn.Linear):
    """``nn.Linear`` by :func:`product`."""

    def forward(self, input: Tensor) -> Tensor:
        """(…, K) to (…, N)."""
        return _multiply(input, self.weight, self.bias)


def with_fast_linear(build: Callable) -> Callable:
    """Makes the linear layers of every module of a config, also a library's, :class:`Linear`.

    Args:
        build: the build function of a registry of modules.
    """

    def build_module(config: dict, default_args: dict | None = None, *, registry: Registry) -> Any:
        module = build(config, default_args, registry=registry)
        if isinstance(module, nn.Module) and prefers_onednn():
            for part in module.modules():
                if type(part) is nn.Linear:
                    part.__class__ = Linear
        return module

    return build_module


def product_of_rows(x: Tensor, y: Tensor) -> Tensor:
    """xᵀ y, (N, K), of (B, N) and (B, K).

    oneDNN copies its first matrix when it is a view: here the smaller of both.
    """
    return product(x.T, y.T) if x.shape[1] <= y.shape[1] else product(y.T, x.T).T


class _Product(torch.autograd.Function):
    """x Wᵀ + b of a matrix x by oneDNN; so are the products of its gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, 'none', [], '')

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        # oneDNN takes some hundred times as long for an expanded gradient, as that of a sum.
        gradient = gradient.contiguous()
        return (
            product(gradient, weight.T) if of_x else None,
            product_of_rows(gradient, x) if of_weight else None,
            gradient.sum(0) if of_bias else None,
        )


@register_flop_formula(torch.ops.mkldnn._linear_pointwise)
def _count_flops(x: torch.Size, weight: torch.Size, *_: Any, **__: Any) -> int:
    """Two operations a multiply-add, for PyTorch's counter."""
    return 2 * x.numel() * weight[0]


def _multiply(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if not _is_for_onednn(x, weight):
        return linear(x, weight, bias)
    # Views are made out here: autograd forbids to change in place what a function makes as a view.
    return _Product.apply(x.flatten(0, -2), weight, bias).unflatten(0, x.shape[:-1])


def _is_for_onednn(x: Tensor, weight: Tensor) -> bool:
    return (
        not torch.compiler.is_compiling()  # sizes may be symbols, and nothing stops the trace
        and prefers_onednn()
        and not torch.jit.is_tracing()
        and not torch.is_autocast_enabled('cpu')
        and x.device.type == 'cpu'
        and x.dtype == weight.dtype == torch.float32
        and x.ndim > 1
        and x.numel() * len(weight) >= SMALLEST
    )
