"""Which kernel of attention a training step on the CPU takes."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode

from xmodal.engine.optim import SafeAmpOptimWrapper

FUSED = '_scaled_dot_product_flash_attention_for_cpu'


class Recorder(TorchDispatchMode):
    """Records the names of all operations."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function._schema.name.partition('::')[2])
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(('dtype', 'is_fused'), [(None, True), ('bfloat16', False)])
def test_bfloat16_trains_without_the_fused_kernel(dtype, is_fused):
    torch.manual_seed(0)
    layer = torch.nn.Linear(32, 3 * 32)
    wrapper = SafeAmpOptimWrapper(
        dtype=dtype, optimizer=torch.optim.SGD(layer.parameters(), lr=0.1)
    )
    x = torch.randn(4, 37, 32)
    with wrapper.optim_context(layer), Recorder() as recorder:
        q, k, v = layer(x).unflatten(-1, (2, -1)).transpose(1, 2).chunk(3, -1)
        attended = scaled_dot_product_attention(q, k, v)
        attended.float().sum().backward()
    assert (FUSED in recorder.names) == is_fused
    with torch.no_grad():
        q, k, v = layer(x).unflatten(-1, (2, -1)).transpose(1, 2).chunk(3, -1)
        weights = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1)
    torch.testing.assert_close(
        attended.float(), weights @ v, atol=1e-4 if dtype is None else 2e-2, rtol=1e-2
    )
