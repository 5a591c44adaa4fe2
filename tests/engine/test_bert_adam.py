"""BertAdam, number by number."""

import math

import pytest
import torch

from xmodal.engine.optim import BertAdam
from xmodal.registry import OPTIMIZERS


def literal(weights, gradients, rates, betas, eps, decay):
    """One weight through all its steps."""
    mean = square = 0.0
    for gradient, lr in zip(gradients, rates, strict=True):
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        square = betas[1] * square + (1 - betas[1]) * gradient**2
        weights -= lr * (mean / (math.sqrt(square) + eps) + decay * weights)
    return weights


@pytest.mark.parametrize(
    ('betas', 'eps', 'decay'), [((0.9, 0.999), 1e-6, 0.01), ((0.8, 0.9), 0.1, 0)]
)
def test_every_step_is_the_published_one(betas, eps, decay):
    rates = [0.0, 0.05, 0.1, 0.06, 0.02]
    start = [torch.randn(3, 2, dtype=torch.float64), torch.randn(4, dtype=torch.float64)]
    weights = [x.clone().requires_grad_() for x in start]
    gradients = [[torch.randn_like(x) for x in start] for _ in rates]
    optimizer = BertAdam(weights, lr=0.1, betas=betas, eps=eps, weight_decay=decay)
    for lr, step_gradients in zip(rates, gradients, strict=True):
        optimizer.param_groups[0]['lr'] = lr
        for weight, gradient in zip(weights, step_gradients, strict=True):
            weight.grad = gradient
        optimizer.step()
    for position, weight in enumerate(weights):
        history = [step_gradients[position].flatten() for step_gradients in gradients]
        for index, value in enumerate(weight.detach().flatten().tolist()):
            weight_gradients = [gradient[index].item() for gradient in history]
            before = start[position].flatten()[index].item()
            expected = literal(before, weight_gradients, rates, betas, eps, decay)
            assert value == pytest.approx(expected, rel=1e-12)


def test_the_first_steps_are_not_corrected():
    weight = torch.zeros(1, requires_grad=True)
    weight.grad = torch.ones(1)
    BertAdam([weight], lr=1.0, weight_decay=0).step()
    assert weight.item() == pytest.approx(-0.1 / math.sqrt(0.001), rel=1e-3)


def test_a_saved_state_goes_on_where_it_was():
    runs = []
    for resumed in (False, True):
        torch.manual_seed(0)
        weight = torch.ones(3, requires_grad=True)
        optimizer = BertAdam([weight], lr=0.1)
        for step in range(4):
            if resumed and step == 2:
                state = optimizer.state_dict()
                optimizer = BertAdam([weight], lr=0.1)
                optimizer.load_state_dict(state)
            weight.grad = torch.randn(3)
            optimizer.step()
        runs.append(weight.detach())
    assert runs[0].equal(runs[1])


def test_parameters_without_a_gradient_stay():
    weights = [torch.ones(2, requires_grad=True) for _ in range(2)]
    weights[0].grad = torch.ones(2)
    BertAdam(weights, lr=0.1).step()
    assert (weights[0] != 1).all() and (weights[1] == 1).all()


def test_it_is_registered():
    assert OPTIMIZERS.get('BertAdam') is BertAdam
