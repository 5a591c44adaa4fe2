"""The momentum twin."""

import torch
from torch import nn

from xmodal.models.momentum import MomentumTwin


def make_twin(decay=0.9):
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    return module, MomentumTwin(module, decay)


def test_a_twin_starts_equal_and_learns_no_gradient():
    module, twin = make_twin()
    for mine, other in zip(module.parameters(), twin.module.parameters(), strict=True):
        assert mine.equal(other) and mine is not other
        assert mine.requires_grad and not other.requires_grad


def test_an_update_moves_a_tenth_of_the_way():
    module, twin = make_twin()
    before = {name: p.clone() for name, p in twin.module.named_parameters()}
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter))
    twin.update(module)
    online = dict(module.named_parameters())
    for name, parameter in twin.module.named_parameters():
        torch.testing.assert_close(parameter, 0.9 * before[name] + 0.1 * online[name])


def test_parameters_stay_the_same_tensors():
    module, twin = make_twin()
    before = [p.data_ptr() for p in twin.module.parameters()]
    twin.update(module)
    assert [p.data_ptr() for p in twin.module.parameters()] == before


def test_buffers_are_copied():
    module, twin = make_twin()
    module.train()(torch.randn(8, 3))
    twin.update(module)
    assert twin.module[2].running_mean.equal(module[2].running_mean)


def test_copying_makes_the_twin_equal_again():
    module, twin = make_twin()
    nn.init.ones_(module[0].weight)
    twin.copy_from(module)
    assert twin.module[0].weight.equal(module[0].weight)
    assert not twin.module[0].weight.requires_grad


def test_a_twin_stays_in_eval_mode():
    module, twin = make_twin()
    parent = nn.ModuleList([module, twin])
    parent.train()
    assert module.training
    assert not any(child.training for child in twin.modules())
