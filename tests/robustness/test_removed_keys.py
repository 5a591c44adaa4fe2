"""Whole configs without one of their keys: what is left runs, or a sentence names the key.

A run is a training of one iteration, a validation and a test. ``pytest --all-trials`` leaves out
every key; otherwise it is those without which something once ended in a traceback, and a sample.
"""

import copy

import pytest
from mmengine.config import Config
from mmengine.logging import MMLogger
from test_config_values import READ
from trials import require_right

from xmodal.engine.keys import check_keys
from xmodal.engine.launch import build_runner
from xmodal.engine.values import check_values

FAMILIES = ('acerpe', 'emkum', 'sgraf', 'vqa')
EVERY = 24  # of so many keys one is left out
# By the end of their dotted keys.
ALWAYS = (
    'dataloader.collate_fn',
    'dataloader.sampler',
    'dataset.pipeline',
    'dataset.test_mode',
    'pipeline.1.fields',
    'tokenizer.pretrained',
    'tokenizer.vocabulary',
    'zero_shot.dataloader',
    'zero_shot.evaluator',
    'param_scheduler.0.step_size',
    'default_scope',
)


def keys_of(section, path=()):
    """The paths of all keys of a config, at any depth."""
    for key, value in section.items() if isinstance(section, dict) else enumerate(section):
        if isinstance(section, dict):
            yield (*path, key)
        if isinstance(value, dict | list):
            yield from keys_of(value, (*path, key))


def without(content, path):
    content = copy.deepcopy(content)
    section = content
    for part in path[:-1]:
        section = section[part]
    del section[path[-1]]
    return content


def run(config):
    """What tools/train.py and tools/test.py do."""
    check_values(config)
    check_keys(config)
    runner = build_runner(config)
    try:
        if runner._train_loop:
            runner.train()
        if runner._test_loop:
            runner.test()
    finally:
        for handler in MMLogger.get_current_instance().handlers:
            handler.close()


@pytest.mark.parametrize('family', FAMILIES)
def test_a_config_without_a_key_runs_or_the_key_is_named(
    trials, family, family_config, tmp_path, request
):
    config = family_config(family)
    config.work_dir = str(tmp_path)
    config.train_cfg.update(max_epochs=1, val_interval=1)
    config.train_dataloader.update(global_batch_size=16, num_batch_per_epoch=2)
    content = config.to_dict()
    paths = [path for path in keys_of(content) if path[0] in READ]
    if not request.config.getoption('all_trials'):
        ends = ['.'.join(map(str, path)).endswith(ALWAYS) for path in paths]
        paths = [path for i, path in enumerate(paths) if ends[i] or i % EVERY == 0]
    ended = []
    for index, path in enumerate([(), *paths]):
        left = without(content, path) if path else content
        left['experiment_name'] = f'{family} {index}'
        one = Config(left, filename=config.filename)
        names = [part for part in path if isinstance(part, str)]
        ended.append(
            trials.run(
                'removed keys',
                f'{family}: {".".join(map(str, path))}',
                lambda one=one: run(one),
                names,
                is_right=True,
                seconds=60,
            )
        )
    require_right(ended)
    assert ended[0].end == 'handled'  # the whole config
