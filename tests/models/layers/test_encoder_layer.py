"""The feed-forward block against its equation, and what it keeps for the backward pass."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from xmodal.models.layers.encoder_layer import FeedForward


def literal(block, tokens):
    """LN(x + W₂ GELU(W₁ x + b₁) + b₂), GELU(z) = z Φ(z)."""
    hidden = tokens @ block.expand.weight.T + block.expand.bias
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
    total = tokens + hidden @ block.contract.weight.T + block.contract.bias
    centred = total - total.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    return scaled * block.norm.weight + block.norm.bias


@pytest.mark.parametrize('amp', [False, True])
def test_outputs_and_gradients_are_those_of_the_equation(amp):
    torch.manual_seed(0)
    block = FeedForward(8, 32).train()
    torch.nn.init.normal_(block.norm.weight)
    tokens = torch.randn(3, 5, 8, requires_grad=True)
    weights = torch.randn(3, 5, 8)
    inputs = [tokens, *block.parameters()]
    expected = literal(block, tokens)
    with torch.autocast('cpu', torch.bfloat16, enabled=amp):
        found = block(tokens)
    tolerance = dict(atol=0.1, rtol=0.1) if amp else dict(atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.float(), expected, **tolerance)
    gradients = torch.autograd.grad((found * weights).sum(), inputs)
    for own, other in zip(
        gradients, torch.autograd.grad((expected * weights).sum(), inputs), strict=True
    ):
        torch.testing.assert_close(own, other, **tolerance)


def test_of_the_wide_activations_one_is_kept():
    block, kept = FeedForward(8, 32), set()

    def keep(tensor):
        if tensor.shape[-1] == 32 and tensor.numel() == 3 * 5 * 32:
            kept.add(tensor.untyped_storage().data_ptr())
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = block(torch.randn(3, 5, 8)).sum()
    assert len(kept) == 1
    loss.backward()
