"""The plateau of a collapsed triplet loss is named, and a warm-up leads round it."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from xmodal.engine.hooks import CollapseHook, NegativesWarmupHook
from xmodal.errors import ConfigError
from xmodal.models.losses import InfoNCELoss, TripletLoss


class Model(nn.Module):
    def __init__(self, head):
        super().__init__()
        self.loss_module = head


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.setattr('xmodal.engine.hooks.collapse.PATIENCE', 5)
    warnings = []
    return SimpleNamespace(
        model=Model(TripletLoss(0.2)),
        epoch=0,
        max_epochs=4,
        warnings=warnings,
        logger=SimpleNamespace(warning=warnings.append),
    )


def iterate(hook, runner, losses):
    for loss in losses:
        outputs = {'loss_triplet': torch.tensor(loss, requires_grad=True)}
        hook.after_train_iter(runner, 0, {'data_samples': [None] * 128}, outputs)


def test_a_loss_on_the_plateau_is_named(runner):
    hook = CollapseHook()
    hook.before_train(runner)
    iterate(hook, runner, [60.0, 51.7, 51.2, 51.5, 51.2])
    assert not runner.warnings
    iterate(hook, runner, [51.2])
    (warning,) = runner.warnings
    assert '51.2 = 2 · margin 0.2 · batch 128 for 5 iterations' in warning
    assert 'NegativesWarmupHook' in warning


def test_a_loss_that_leaves_the_plateau_is_not(runner):
    iterate(CollapseHook(), runner, [51.2, 51.2, 51.2, 51.2, 49.0] * 3)
    assert not runner.warnings


def test_a_run_that_stays_there_is_reminded_now_and_then(runner):
    iterate(CollapseHook(), runner, [51.2] * 14)
    assert len(runner.warnings) == 2


def test_negatives_are_their_mean_in_the_first_epochs(runner):
    hook = NegativesWarmupHook(epochs=2)
    hook.before_train(runner)
    seen = []
    for runner.epoch in range(4):
        hook.before_train_epoch(runner)
        seen.append(runner.model.loss_module.negatives)
    assert seen == ['mean', 'mean', 'hardest', 'hardest']


@pytest.mark.parametrize('epochs', [4, 5])
def test_a_warm_up_that_never_ends_is_named(runner, epochs):
    NegativesWarmupHook(epochs=3).before_train(runner)
    assert not runner.warnings
    NegativesWarmupHook(epochs).before_train(runner)
    (warning,) = runner.warnings
    assert f'NegativesWarmupHook.epochs={epochs}' in warning and '4 epoch(s)' in warning


def test_a_resumed_run_is_where_it_was(runner):
    runner.epoch = 3
    hook = NegativesWarmupHook(epochs=2)
    hook.before_train(runner)
    hook.before_train_epoch(runner)
    assert runner.model.loss_module.negatives == 'hardest'


@pytest.mark.parametrize('hook', [CollapseHook, NegativesWarmupHook])
def test_another_loss_is_an_error(runner, hook):
    runner.model.loss_module = InfoNCELoss()
    with pytest.raises(ConfigError, match='model.loss is InfoNCELoss: leave the hook out'):
        hook().before_train(runner)
