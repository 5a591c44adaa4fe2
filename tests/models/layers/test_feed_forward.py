"""The feed-forward block against its equation."""

import pytest
import torch

from xmodal.models.layers import FeedForward


def literal(block, tokens):
    """LN(x + W₂ GELU(W₁ x + b₁) + b₂), GELU(z) = z Φ(z)."""
    hidden = tokens @ block.fc1.weight.T + block.fc1.bias
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
    total = tokens + hidden @ block.fc2.weight.T + block.fc2.bias
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
        actual = block(tokens)
    tolerance = dict(atol=0.1, rtol=0.1) if amp else dict(atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(actual.float(), expected, **tolerance)
    gradients = torch.autograd.grad((actual * weights).sum(), inputs)
    expected_gradients = torch.autograd.grad((expected * weights).sum(), inputs)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, **tolerance)


def test_the_engine_can_replace_the_step_that_it_recomputes(monkeypatch):
    block, tokens = FeedForward(8, 32), torch.randn(3, 5, 8)
    expected, hidden = block(tokens), []
    activate = block.activate
    monkeypatch.setattr(block, 'activate', lambda x: (hidden.append(x), activate(x))[1])
    assert block(tokens).equal(expected)
    assert [x.shape for x in hidden] == [(3, 5, 32)]
