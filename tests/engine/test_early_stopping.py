"""A run that is resumed stops where it would have stopped without interruption."""

import pytest
from mmengine.hooks import Hook
from runs import train

from xmodal.engine.hooks.early_stopping import EarlyStoppingHook
from xmodal.errors import ConfigError
from xmodal.registry import HOOKS

SCORES = 1.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0


@HOOKS.register_module(force=True)
class PlannedScores(Hook):
    """Gives each epoch a score."""

    priority = 'HIGHEST'

    def after_val_epoch(self, runner, metrics=None):
        metrics['planned'] = SCORES[runner.epoch - 1]


def last_epoch(config, early, **changes):
    """Where a run with early stopping ends."""
    hooks = [*config.custom_hooks, dict(type='PlannedScores'), early]
    return train(config, custom_hooks=hooks, **changes).epoch


@pytest.mark.parametrize(
    ('options', 'end'), [(dict(patience=2), 4), (dict(stopping_threshold=2.5), 2)]
)
def test_a_run_that_is_resumed_stops_as_without_interruption(tiny_config, tmp_path, options, end):
    tiny_config.train_cfg.update(max_epochs=len(SCORES), val_interval=1)
    tiny_config.default_hooks.checkpoint.update(save_best='planned', rule='greater')
    early = dict(type='EarlyStoppingHook', monitor='planned', rule='greater', **options)
    assert last_epoch(tiny_config, early) == end
    # The best one is saved again with its validation; the others are saved before theirs alone.
    for epoch in range(2, end + 1):
        changes = dict(resume=True, load_from=f'{tiny_config.work_dir}/epoch_{epoch}.pth')
        changes['work_dir'] = str(tmp_path / f'resumed_{epoch}')
        assert last_epoch(tiny_config, early, **changes) == end


def test_a_hook_that_is_new_to_a_run_begins_to_count(tiny_config):
    tiny_config.train_cfg.update(max_epochs=1, val_interval=1)
    tiny_config.param_scheduler = []  # of which a shorter run has others
    train(tiny_config)
    early = dict(type='EarlyStoppingHook', monitor='planned', rule='greater', patience=2)
    changes = {'resume': True, 'train_cfg.max_epochs': len(SCORES)}
    assert last_epoch(tiny_config, early, **changes) == 4


def test_a_metric_that_the_validation_does_not_have_is_an_error():
    metrics = {'mean_recall': 1.0, 'i2t/R@1': 2.0}
    early = dict(monitor='mean_recal', rule='greater')
    with pytest.raises(ConfigError, match="monitor='mean_recal', .* are mean_recall, i2t/R@1"):
        EarlyStoppingHook(**early).after_val_epoch(None, metrics)
    with pytest.warns(UserWarning, match='Skip early stopping'):
        EarlyStoppingHook(strict=False, **early).after_val_epoch(None, metrics)
