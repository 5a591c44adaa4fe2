"""The momentum teacher's hook: the weight of its soft targets, iteration by iteration."""

import pytest
import torch
from runs import call_at, train

from xmodal.engine.hooks import DelayedHeadsHook, WeightEMAHook
from xmodal.engine.hooks.checks import check_hooks
from xmodal.engine.hooks.momentum import MomentumDistillationHook
from xmodal.engine.values import check_values
from xmodal.errors import ConfigError
from xmodal.registry import MODELS


def weights_of(config, **options):
    """α at each of the eight iterations of two epochs."""
    seen = []
    config.custom_hooks = [dict(type='MomentumDistillationHook', alpha=0.4, **options)]
    config.custom_hooks += [
        call_at(i, lambda runner: seen.append(runner.model.distillation_weight)) for i in range(8)
    ]
    train(config)
    return seen


def test_the_weight_rises_over_the_first_epoch_as_in_albef(tiny_config):
    expected = [0.4 * min(1, i / 4) if epoch == 0 else 0.4 for epoch in (0, 1) for i in range(4)]
    assert weights_of(tiny_config) == pytest.approx(expected)


def test_the_weight_rises_over_two_epochs_as_in_lavis(tiny_config):
    expected = [0.4 * (epoch * 4 + i) / 8 for epoch in (0, 1) for i in range(4)]
    assert weights_of(tiny_config, ramp_epochs=2) == pytest.approx(expected)


def test_without_a_ramp_the_first_iteration_has_the_whole_weight(tiny_config):
    assert weights_of(tiny_config, ramp_epochs=0) == [0.4] * 8


@pytest.mark.parametrize('alpha', [40, -0.4, '0.4'])
def test_a_weight_that_makes_targets_negative_is_an_error(alpha):
    with pytest.raises(ConfigError, match=f'alpha={alpha!r}, expected a number from 0 to 1'):
        MomentumDistillationHook(alpha=alpha)


def test_the_alpha_of_a_hook_of_a_plug_in_may_be_anything(tiny_config):
    tiny_config.custom_hooks.append(dict(type='MixUpHook', alpha=4.0))
    check_values(tiny_config)


@pytest.mark.parametrize('momentum', [99.5, 1.1, -0.5])
def test_a_momentum_that_moves_the_teacher_away_from_the_model_is_an_error(tiny_config, momentum):
    tiny_config.model.momentum = momentum
    with pytest.raises(ValueError, match=f'momentum={momentum}, expected a number from 0 to 1'):
        MODELS.build(tiny_config.model)


def test_a_teacher_that_no_hook_moves_is_an_error(tiny_config):
    tiny_config.custom_hooks = []  # as of a config with hooks of its own in place of the inherited
    with pytest.raises(ConfigError, match='custom_hooks has no MomentumDist.*momentum=None'):
        train(tiny_config)
    tiny_config.model.momentum = None
    assert train(tiny_config, **{'train_cfg.max_epochs': 1}).model.teacher is None


def test_a_plug_in_that_calls_its_teacher_otherwise_needs_no_hook_of_this_name():
    model = torch.nn.Linear(1, 1)
    model.update_momentum = model.forward
    check_hooks(model, [])
    model.teacher = torch.nn.Linear(1, 1)
    with pytest.raises(ConfigError, match='hook of your own that extends it'):
        check_hooks(model, [])


def test_a_hook_that_extends_this_one_moves_the_teacher():
    model = torch.nn.Linear(1, 1)
    model.update_momentum, model.teacher = model.forward, torch.nn.Linear(1, 1)
    check_hooks(model, [type('Own', (MomentumDistillationHook,), {})()])


@pytest.mark.parametrize(
    ('make', 'reason'),
    [
        (lambda: DelayedHeadsHook({'itm': 3}), 'starts at once all heads that the others delay'),
        (MomentumDistillationHook, 'each would move the teacher'),
        (type('Own', (MomentumDistillationHook,), {}), 'each would move the teacher'),
        (WeightEMAHook, 'a checkpoint has one average'),
    ],
)
def test_a_hook_that_is_added_to_an_inherited_one_of_its_kind_is_an_error(make, reason):
    inherited = make()
    check_hooks(torch.nn.Linear(1, 1), [inherited])
    with pytest.raises(ConfigError, match=f'has 2 of .*{reason}.*: give one'):
        check_hooks(torch.nn.Linear(1, 1), [inherited, make()])
