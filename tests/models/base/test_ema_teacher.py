"""The momentum teacher."""

import torch
from torch import nn

from xmodal.models.base.ema_teacher import EMATeacher


def make_teacher(decay=0.9):
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    return module, EMATeacher(module, decay)


def test_a_teacher_starts_as_an_equal_copy_without_gradients():
    module, teacher = make_teacher()
    for online, averaged in zip(module.parameters(), teacher.module.parameters(), strict=True):
        assert online.equal(averaged) and online is not averaged
        assert online.requires_grad and not averaged.requires_grad


def test_an_update_moves_the_teacher_by_one_minus_its_decay():
    module, teacher = make_teacher()
    before = {name: p.clone() for name, p in teacher.module.named_parameters()}
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter))
    teacher.update(module)
    online = dict(module.named_parameters())
    for name, averaged in teacher.module.named_parameters():
        torch.testing.assert_close(averaged, 0.9 * before[name] + 0.1 * online[name])


def test_an_update_writes_to_the_tensors_of_the_teacher():
    module, teacher = make_teacher()
    before = [p.data_ptr() for p in teacher.module.parameters()]
    teacher.update(module)
    assert [p.data_ptr() for p in teacher.module.parameters()] == before


def test_buffers_are_copied():
    module, teacher = make_teacher()
    module.train()(torch.randn(8, 3))
    teacher.update(module)
    assert teacher.module[2].running_mean.equal(module[2].running_mean)


def test_copying_makes_the_teacher_equal_again():
    module, teacher = make_teacher()
    nn.init.ones_(module[0].weight)
    teacher.copy_from(module)
    assert teacher.module[0].weight.equal(module[0].weight)
    assert not teacher.module[0].weight.requires_grad


def test_a_teacher_stays_in_eval_mode():
    module, teacher = make_teacher()
    parent = nn.ModuleList([module, teacher])
    parent.train()
    assert module.training
    assert not any(child.training for child in teacher.modules())
