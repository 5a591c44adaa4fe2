"""Every key of a config with wrong values, and every section with a key that nothing reads."""

import math
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.config import Config
from trials import require_right

from xmodal.benchmark import write_placeholder_vocabulary
from xmodal.engine.components import check_components
from xmodal.engine.keys import check_keys
from xmodal.engine.launch import build_runner
from xmodal.engine.values import check_loops, check_values
from xmodal.errors import ConfigError
from xmodal.registry import MODELS

FILE = 'configs/acerpe/retrieval_shapes.py'
ORIGINAL = Config.fromfile(FILE)
ORIGINAL.custom_hooks = [dict(type='MomentumDistillationHook', alpha=0.4, momentum=0.995)]
VOCABULARY = write_placeholder_vocabulary(tempfile.mkdtemp(prefix='vocabulary_'))
NAN = math.nan
# By the type of the value in the config: what no key of this type may be. None leaves a key out.
WRONG = {
    bool: ['x', 2, -1, NAN, [], {}, [1]],
    int: ['x', '', NAN, 0.5, True, [], {}, [1], {'a': 1}],
    float: ['x', '', NAN, True, [], {}, [1], {'a': 1}],
    str: [-1, 0.5, NAN, True, {}, {'a': 1}],
    list: ['x', 3, NAN, True],
    dict: ['x', 3, NAN, True, [1], ['x']],
}
# Keys that take several types: a model's own words, widths by name, switches with a length.
SEVERAL = (
    'collate_fn', 'pretrained', 'lr', 'momentum', 'mean', 'std', 'ann_file', 'init_cfg', 'indices',
    'mlp_ratio',
)  # fmt: skip
# Keys that are handed on to timm, which takes True for 1.
HANDED_ON = ('patch_size', 'num_heads')
# Variables of the config, which other keys are made of: nothing reads them under these names.
READ = (
    'model', 'train_dataloader', 'val_dataloader', 'test_dataloader', 'train_cfg', 'val_cfg',
    'test_cfg', 'val_evaluator', 'test_evaluator', 'optim_wrapper', 'param_scheduler',
    'default_hooks', 'custom_hooks', 'env_cfg', 'randomness', 'visualizer', 'log_processor',
    'log_level', 'load_from', 'resume', 'runner_type', 'default_scope', 'find_unused_parameters',
)  # fmt: skip
# Values of the right type that no run can have.
OUT_OF_RANGE = {
    'train_cfg.max_epochs': [0, -1],
    'train_cfg.val_interval': [0, -1],
    'train_dataloader.global_batch_size': [0, -1],
    'val_dataloader.batch_size': [0, -1],
    'train_dataloader.num_workers': [-1, 10**9],
    'val_dataloader.prefetch_factor': [0, -1],
    'optim_wrapper.accumulative_counts': [0, -1],
    'optim_wrapper.optimizer.lr': [-1, NAN, math.inf],
    'optim_wrapper.optimizer.weight_decay': [-1, NAN, math.inf],
    'optim_wrapper.clip_grad': [{}, {'zzz': 1}, {'max_norm': 0}, {'max_norm': 1, 'zzz': 1}],
    'param_scheduler': [{}, [{}], [None]],
    'default_hooks.checkpoint.interval': [0, -2],
    'default_hooks.checkpoint.max_keep_ckpts': [0, -2],
    'default_hooks.logger.interval': [0, -1],
    'default_hooks.broken_images.limit': [-0.1, 1.1],
    'default_hooks.non_finite.limit': [0, -1],
    'custom_hooks': [[{}], [None], {}],
    'randomness.seed': [-1, 2**32, 'x'],
    'randomness': [{}, None],
    'env_cfg.mp_cfg.mp_start_method': ['x', ''],
    'log_level': ['LOUD', ''],
    'val_cfg.scorer.topk': [-1],
    'val_cfg': [None],
    'val_evaluator': [None, {}],
    'train_dataloader': [None, {}],
    'optim_wrapper': [None, {}],
    'sync_bn': ['zzz'],
    'activation_checkpointing': ['Block', 3],
    'fsdp': [3, {'units': 'Block'}],
    'compile': ['x'],
    'auto_scale_lr': [{'enable': True}],
    'load_from_ignore': ['heads', None],
}


def leaves(section, path=''):
    """All values of a config with their dotted keys."""
    items = section.items() if isinstance(section, dict) else enumerate(section)
    for key, value in items:
        dotted = f'{path}.{key}'.lstrip('.')
        yield dotted, value
        of_dicts = isinstance(value, list) and any(isinstance(item, dict) for item in value)
        if of_dicts or isinstance(value, dict):
            yield from leaves(value, dotted)


LEAVES = {key: value for key, value in leaves(ORIGINAL.to_dict()) if key.split('.')[0] in READ}


def changed(key, value):
    """The config with another value."""
    config = Config(ORIGINAL.to_dict(), filename=FILE)
    section = config
    *path, name = (int(part) if part.isdecimal() else part for part in key.split('.'))
    for part in path:
        section = section[part] if isinstance(section, list) else section.setdefault(part, {})
    section[name] = value
    return config


def check(config):
    check_values(config)
    check_keys(config)
    check_loops(config)
    check_components(config)


def trial(trials, key, value):
    # The key, or the dict that it is in; a place in a list names nothing.
    names = [part for part in key.split('.') if not part.isdecimal()][-2:]
    is_right = key.endswith(HANDED_ON) and value is True

    def build():
        config = changed(key, value)
        check(config)
        if key.startswith('model.'):  # a key that a part hands on is checked where it ends
            config.model.data_preprocessor.tokenizer.pretrained = VOCABULARY
            MODELS.build(config.model)

    return trials.run('config values', f'{key}={value!r}', build, names, is_right)


@pytest.mark.parametrize('section', READ)
def test_a_value_of_another_type_is_named_with_its_key(trials, section):
    tried = []
    for key, value in LEAVES.items():
        if key.split('.')[0] != section or key.rpartition('.')[2] in SEVERAL:
            continue
        tried += [trial(trials, key, wrong) for wrong in WRONG.get(type(value), ())]
    require_right(tried)


@pytest.mark.parametrize('key', OUT_OF_RANGE)
def test_a_value_that_no_run_can_have_is_named_with_its_key(trials, key):
    require_right([trial(trials, key, value) for value in OUT_OF_RANGE[key]])


@settings(max_examples=150)
@given(
    key=st.sampled_from(sorted(LEAVES)),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=6,
    ),
)
def test_whatever_a_value_is_checking_it_ends_in_a_sentence_or_passes(key, value):
    try:
        check(changed(key, value))
    except ConfigError as error:
        assert any(part in str(error) for part in key.split('.') if not part.isdecimal())


SECTIONS = {
    'optim_wrapper': 'SafeAmpOptimWrapper',
    'optim_wrapper.optimizer': 'AdamW',
    'param_scheduler.0': 'LinearLR',
    'train_dataloader': 'DataLoader',
    'train_dataloader.sampler': 'EpochSampler',
    'train_dataloader.dataset': 'Dataset',
    'train_cfg': 'TrainLoop',
    'val_cfg': 'RetrievalLoop',
    'val_evaluator': 'RetrievalMetric',
    'default_hooks.timer': 'IterTimerHook',
    'custom_hooks.0': 'MomentumDistillationHook',
    'visualizer': 'Visualizer',
    'model': 'AlbefPretrainer',
    'env_cfg': 'env_cfg',
    'env_cfg.mp_cfg': 'mp_cfg',
    'log_processor': 'log_processor',
    'randomness': 'randomness',
}


@pytest.mark.parametrize('path', SECTIONS)
def test_a_key_that_nothing_reads_is_named(trials, tiny_config, path):
    tiny_config.experiment_name = f'unknown key of {path}'
    section = tiny_config
    for part in path.split('.'):
        section = section[int(part) if part.isdecimal() else part]
    section['no_such_key'] = 1

    def build():
        check_keys(tiny_config)
        build_runner(tiny_config).train()

    require_right([trials.run('unknown keys', path, build, ['no_such_key'], seconds=60)])
