"""Clipping of gradients against PyTorch's own, by a norm that is computed once."""

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from xmodal.engine.optim import SafeAmpOptimWrapper

CLIPS = [
    dict(max_norm=0.1),
    dict(max_norm=1e3),
    dict(max_norm=0.1, norm_type=float('inf')),
    dict(type='value', clip_value=0.01),
    None,
]


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(2, 3))


def loss_of(model):
    torch.manual_seed(1)
    return model[:2](torch.randn(5, 4)).square().sum()  # the last layer gets no gradient


def make_optimizer(model):
    groups = [dict(params=model[0].parameters()), dict(params=model[1:].parameters(), lr=0.5)]
    return torch.optim.SGD(groups, lr=0.1)


@pytest.mark.parametrize('clip', CLIPS, ids=str)
def test_clipping_is_pytorchs_and_its_norm_is_logged(clip):
    model, expected = make_model(), make_model()
    wrapper = SafeAmpOptimWrapper(optimizer=make_optimizer(model), clip_grad=clip and dict(clip))
    wrapper.update_params(loss_of(model))

    optimizer, norm = make_optimizer(expected), None
    loss_of(expected).backward()
    if clip and 'max_norm' in clip:
        norm = clip_grad_norm_(expected.parameters(), **clip)
    elif clip:
        clip_grad_value_(expected.parameters(), clip['clip_value'])
    optimizer.step()

    assert wrapper.stepped
    for ours, theirs in zip(model.parameters(), expected.parameters(), strict=True):
        assert ours.equal(theirs)
    if norm is not None:
        assert wrapper.message_hub.get_scalar('train/grad_norm').current() == float(norm)


@pytest.mark.parametrize('accumulate', [1, 3])
def test_the_norm_is_computed_once_a_step(monkeypatch, accumulate):
    model, norms = make_model(), []
    foreach_norm = torch._foreach_norm
    monkeypatch.setattr(
        torch, '_foreach_norm', lambda *args: (norms.append(args), foreach_norm(*args))[1]
    )
    wrapper = SafeAmpOptimWrapper(
        optimizer=make_optimizer(model),
        clip_grad=dict(max_norm=0.1),
        accumulative_counts=accumulate,
    )
    for _ in range(6):
        wrapper.update_params(loss_of(model))
    assert len(norms) == 6 // accumulate
