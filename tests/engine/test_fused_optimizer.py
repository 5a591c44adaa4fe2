"""Adam and AdamW are fused by default: the same weights up to rounding, the same checkpoints."""

import math

import pytest
import torch
from torch import nn

from xmodal.engine.optim import NoDecayConstructor, SafeAmpOptimWrapper
from xmodal.registry import OPTIMIZERS, register_all

RATES = (0.0, 0.05, 0.1, 0.02)
BETAS, EPS, DECAY = (0.8, 0.95), 1e-6, 0.1


def literal(weight, gradients):
    """One number through all steps of AdamW (Loshchilov and Hutter, 2019, Algorithm 2)."""
    mean = square = 0.0
    for step, (gradient, rate) in enumerate(zip(gradients, RATES, strict=True), start=1):
        mean = BETAS[0] * mean + (1 - BETAS[0]) * gradient
        square = BETAS[1] * square + (1 - BETAS[1]) * gradient**2
        root = math.sqrt(square / (1 - BETAS[1] ** step))
        weight -= rate * (mean / (1 - BETAS[0] ** step) / (root + EPS) + DECAY * weight)
    return weight


def build_optimizer(params, **keys):
    config = dict(type='AdamW', lr=0.1, betas=BETAS, eps=EPS, weight_decay=DECAY, **keys)
    return OPTIMIZERS.build({**config, 'params': params})


def test_every_step_is_adamws():
    torch.manual_seed(0)
    start = torch.randn(3, 2, dtype=torch.float64)
    weight = nn.Parameter(start.clone())
    optimizer = build_optimizer([weight])
    assert optimizer.param_groups[0]['fused'] is True
    gradients = [torch.randn_like(start) for _ in RATES]
    for rate, gradient in zip(RATES, gradients, strict=True):
        optimizer.param_groups[0]['lr'] = rate
        weight.grad = gradient.clone()
        optimizer.step()
    for index, value in enumerate(weight.detach().flatten().tolist()):
        history = [gradient.flatten()[index].item() for gradient in gradients]
        expected = literal(start.flatten()[index].item(), history)
        assert value == pytest.approx(expected, rel=1e-12)


def test_all_constructors_make_it_fused():
    register_all()
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    of_mmengine = OPTIMIZERS.parent.build(
        dict(type='Adam', lr=0.1), default_args=dict(params=model.parameters())
    )
    of_mmengine_too = OPTIMIZERS.parent.build(
        dict(type='Adam', lr=0.1, params=model.parameters())  # a generator, as MMEngine gives it
    )
    ours = NoDecayConstructor(dict(optimizer=dict(type='AdamW', lr=0.1)))(model).optimizer
    for optimizer in (of_mmengine, of_mmengine_too, ours):
        assert all(group['fused'] is True for group in optimizer.param_groups)
        assert sum(len(group['params']) for group in optimizer.param_groups) == 4


@pytest.mark.parametrize('kind', ['Adam', 'AdamW'])
def test_parameters_are_taken_in_every_form_that_pytorch_takes(kind):
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    forms = [
        lambda: model.parameters(),
        lambda: list(model.parameters()),
        lambda: model.named_parameters(),
        lambda: [{'params': model[0].parameters(), 'lr': 0.2}, {'params': model[1].weight}],
        lambda: [{'params': model[0].named_parameters()}],
        lambda: [{'params': [model[0].weight], 'foreach': True}, {'params': [model[0].bias]}],
    ]
    for form in forms:
        built = OPTIMIZERS.build(dict(type=kind, params=form())).param_groups
        expected = getattr(torch.optim, kind)(form()).param_groups
        for group, of_torch in zip(built, expected, strict=True):
            assert group.pop('fused') is (None if group['foreach'] else True)
            of_torch.pop('fused')
            pairs = zip(group.pop('params'), of_torch.pop('params'), strict=True)
            assert all(own is given for own, given in pairs) and group == of_torch


@pytest.mark.parametrize('keys', [dict(fused=False), dict(foreach=True), dict(capturable=False)])
def test_a_config_that_says_how_it_is_computed_is_obeyed(keys):
    optimizer = build_optimizer([nn.Parameter(torch.ones(2))], **keys)
    assert not optimizer.param_groups[0]['fused']


def test_weights_that_are_no_floats_and_other_optimizers_are_left_alone():
    complex_weight = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    assert not build_optimizer([complex_weight]).param_groups[0]['fused']
    sgd = OPTIMIZERS.build(dict(type='SGD', lr=0.1, params=[nn.Parameter(torch.ones(2))]))
    assert not sgd.param_groups[0]['fused']


def wrap(weight, **keys):
    return SafeAmpOptimWrapper(optimizer=build_optimizer([weight], **keys))


def train(wrapper, weight, gradients):
    for gradient in gradients:
        weight.grad = gradient.clone()
        wrapper.step()


@pytest.mark.parametrize('saved_by', [dict(), dict(fused=False)])
def test_a_saved_run_goes_on_with_the_kernel_of_the_new_one(saved_by):
    torch.manual_seed(0)
    gradients = [torch.randn(5) for _ in range(6)]
    whole, first = (nn.Parameter(torch.ones(5)) for _ in range(2))
    train(wrap(whole), whole, gradients)
    before = wrap(first, **saved_by)
    train(before, first, gradients[:3])
    second = nn.Parameter(first.detach().clone())
    after = wrap(second)
    after.load_state_dict(before.state_dict())
    assert after.optimizer.param_groups[0]['fused'] is True
    train(after, second, gradients[3:])
    if saved_by:
        torch.testing.assert_close(second, whole, rtol=1e-6, atol=1e-6)
    else:
        assert second.equal(whole)
