"""Matrix products of a tile, in the type of their first factor."""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

HAS_ONEDNN = torch.backends.mkldnn.is_available()
# With AVX2, MKL is as fast on every processor, and needs no other layout of its inputs.
PREFERS_ONEDNN = HAS_ONEDNN and torch.backends.cpu.get_cpu_capability() != 'AVX2'
# What PyTorch itself asks before it gives a product of these types to oneDNN.
_CHECKS = {
    torch.bfloat16: '_is_mkldnn_bf16_supported',
    torch.float16: '_is_mkldnn_fp16_supported',
}


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
    """x Wᵀ + b, as :func:`torch.nn.functional.linear`.

    On a CPU, in float32 and without gradients, it is written as a convolution over single points:
    PyTorch gives convolutions to oneDNN, and matrix products to MKL, which has no AVX-512 kernels
    for processors that are not Intel's (250 against 105 GFLOP/s on a core of AMD's Zen 5).

    Args:
        x: (…, K).
        weight: W, (N, K).
        bias: b, (N,).

    Returns:
        (…, N).
    """
    weight = weight.to(x.dtype)
    bias = None if bias is None else bias.to(x.dtype)
    is_plain = x.device.type == 'cpu' and x.dtype == torch.float32 and PREFERS_ONEDNN
    if not is_plain or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return linear(x, weight, bias)
    points = x.reshape(1, -1, 1, x.shape[-1]).permute(0, 3, 1, 2)
    kernel = weight[:, :, None, None]
    output = torch.mkldnn_convolution(points, kernel, bias, (0, 0), (1, 1), (1, 1), 1)
    return output.permute(0, 2, 3, 1).reshape(*x.shape[:-1], len(weight))


def batched_product(x: Tensor, y: Tensor) -> Tensor:
    """x y of each of B pairs of matrices, (B, P, K) and (B, K, N)."""
    return product(x[0], y[0].T)[None] if len(x) == 1 else x @ y


def xavier_linear(in_features: int, out_features: int, bias: bool = True) -> nn.Linear:
    """A linear layer as SGRAF initialises it: Xavier-uniform weights, zero bias.

    The entries of a squared difference are about 1e-3; PyTorch's bias would dominate them after
    normalising.
    """
    layer = nn.Linear(in_features, out_features, bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
