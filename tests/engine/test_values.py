"""Values that no run can have are refused before anything is built."""

from pathlib import Path

import pytest
from mmengine.config import Config

from xmodal.engine.components import check_components
from xmodal.engine.values import check_loops, check_scaling, check_values
from xmodal.errors import ConfigError

CONFIGS = sorted(Path('configs').glob('[!_]*/*.py'))


@pytest.fixture(scope='module')
def config():
    return Config.fromfile('configs/acerpe/pretrain_shapes.py')


@pytest.mark.parametrize('file', CONFIGS, ids=str)
def test_the_configs_that_come_with_the_package_pass(file):
    config = Config.fromfile(file, import_custom_modules=False)
    check_values(config)
    check_loops(config)
    check_components(config)


@pytest.mark.parametrize(
    'key, values, expected',
    [
        ('train_cfg.max_epochs', [0, -1, 1.5, '3', None, True], 'a whole number of at least 1'),
        ('train_cfg.max_iters', [100], "max_epochs and type='ResumableEpochTrainLoop'"),
        ('train_cfg.val_interval', [0, 'x'], 'a whole number of at least 1'),
        ('train_dataloader.global_batch_size', [None, 0, '64'], 'a whole number of at least 1'),
        ('val_dataloader.batch_size', [0, [100]], 'a whole number of at least 1'),
        ('test_dataloader.num_workers', [-1, None, 10**9], 'a whole number from 0 to 1024'),
        ('optim_wrapper.accumulative_counts', [0], 'a whole number of at least 1'),
        ('optim_wrapper.optimizer.lr', [-1, 'x', float('nan'), float('inf')], 'a number of at'),
        ('optim_wrapper.clip_grad.max_norm', [-1, 0, None], 'a number above 0'),
        ('default_hooks.checkpoint.interval', [0, -2], 'at least 1, or -1 for never'),
        ('randomness.seed', [-1, 2**32, 1.0], r'from 0 to 2\*\*32 - 1'),
        ('custom_hooks', ['x', ['EMAHook'], dict(type='EMAHook'), [{}]], 'a list of dicts, each a'),
        ('train_dataloader', [[], {}], "a dict with 'dataset'"),
        ('optim_wrapper.optimizer', [None, {}, 'Adam'], "a dict with 'type'"),
        ('param_scheduler', [{}, [3], 'x'], "a dict with 'type', or a list"),
        ('val_evaluator', [{}, 3], "a dict with 'type', or a list"),
        ('default_hooks.mine', [3, {}], "a dict with 'type' or None"),
        ('default_hooks.broken_images.limit', [-0.1, 2, float('nan')], 'a number from 0 to 1'),
        ('log_level', ['LOUD', None], "a level of Python's logging"),
        ('resume', ['yes', 1], 'True or False'),
        ('env_cfg', [None, 3], 'a dict'),
        ('default_hooks.checkpoint', [5], 'a dict'),
        ('load_from', [3], 'a name or None'),
        ('load_from_ignore', ['backbone', [3], None], 'a list of names'),
    ],
)
def test_an_impossible_value_is_named_with_its_key(config, key, values, expected):
    for value in values:
        changed = Config(config.to_dict())
        section, _, name = key.rpartition('.')
        target = changed
        for part in section.split('.') if section else ():
            target = target.setdefault(part, {})
        target[name] = value
        with pytest.raises(ConfigError, match=rf': {key}=.*, expected .*{expected}'):
            check_values(changed)


def test_a_value_may_be_left_out(config):
    changed = Config(config.to_dict())
    changed.optim_wrapper.clip_grad = changed.visualizer = changed.default_hooks.timer = None
    check_values(changed)
    changed.train_cfg = changed.train_dataloader = changed.optim_wrapper = None
    changed.pop('custom_hooks')
    changed.pop('randomness')
    check_values(changed)


@pytest.mark.parametrize('key', ['train_cfg', 'val_evaluator', 'test_dataloader'])
def test_a_loop_needs_its_three_sections(config, key):
    changed = Config(config.to_dict())
    changed[key] = None
    with pytest.raises(ConfigError, match=rf'it has .* without {key}: give all three or none'):
        check_loops(changed)


def test_a_learning_rate_is_not_scaled_by_a_part_of_the_batch_of_a_step(config):
    changed = Config(config.to_dict())
    changed.auto_scale_lr = dict(base_batch_size=64, enable=True)
    check_scaling(changed)
    changed.optim_wrapper.accumulative_counts = 4
    with pytest.raises(ConfigError, match='auto_scale_lr .*accumulative_counts=4: leave it out'):
        check_scaling(changed)
    changed.auto_scale_lr.enable = False
    check_scaling(changed)
