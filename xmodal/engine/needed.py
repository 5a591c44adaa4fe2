"""Keys without which a run would end late, or measure something else, found before it is built."""

import re
from collections.abc import Iterator

from mmengine.config import Config

from xmodal.arguments import accepted_parameters
from xmodal.config_text import sections
from xmodal.errors import ConfigError, nearest
from xmodal.registry import DATASETS, RUNNERS, SCOPE

# The dotted keys of data loaders: those of the config, and those of single loops.
_LOADER_PATH = re.compile(r'\w+_dataloader|(val|test)_cfg\.(.+\.)?dataloader')
# What to write for a key of a data loader, and for one of a data set, that is not there.
_LOADER = {
    'dataset': "dataset=dict(type='…')",
    'sampler': "sampler=dict(type='EpochSampler') to train, and dict(type='DefaultSampler', "
    'shuffle=False, round_up=False) to evaluate',
    'collate_fn': "collate_fn=dict(type='xmodal.stack_images'), or 'xmodal.stack_regions' for "
    'regions',
}
_LOOP_KEY = 'fp16'  # the only one of MMEngine's default loops
_DATASET = {
    'pipeline': "pipeline=[…], transforms of which the last is dict(type='PackImageText'), or "
    "'PackRegionText' for regions",
    'test_mode': 'test_mode=True, so that nothing is random, and an image comes with all its '
    'captions',
}


def check_needed(config: Config) -> None:
    """Refuses a config without a model or a runner, or a key of a data loader or a data set.

    Without ``collate_fn`` a batch would be a list, without ``pipeline`` a sample would have no
    image, and without ``test_mode`` a validation would draw captions and skip broken images.

    Raises:
        ConfigError: names the key, and what to write.
    """
    if config.get('model') is None:
        raise ConfigError(f"{config.filename} has no model: write model=dict(type='…')")
    if 'runner_type' not in config:
        raise ConfigError(
            f"{config.filename} has no runner_type: inherit from '_base_/default_runtime.py'"
        )
    scope, runner = config.get('default_scope', SCOPE), config.runner_type
    if scope != SCOPE and runner in RUNNERS.module_dict:
        raise ConfigError(
            f"{config.filename}: default_scope='{scope}', where MMEngine does not find "
            f"runner_type='{runner}': write default_scope='{SCOPE}', and the scope of other types "
            'before their names, as mmpretrain.ResNet'
        )
    for key in ('val_cfg', 'test_cfg'):
        loop = config.get(key) or {}
        if 'type' not in loop and any(nearest(name, [_LOOP_KEY]) is None for name in loop):
            raise ConfigError(
                f"{config.filename}: {key} has no type: write type='…', the loop that takes its "
                f'keys {", ".join(loop)}'
            )
    for path, loader in sections(config):
        if not _LOADER_PATH.fullmatch(path):
            continue
        is_training = path == 'train_dataloader'
        if is_training and not {'global_batch_size', 'batch_size', 'batch_sampler'} & loader.keys():
            raise ConfigError(
                f'{config.filename}: {path} has no global_batch_size, the samples of one step of '
                'all processes'
            )
        for key, remedy in _LOADER.items():
            if key not in loader and not (key == 'sampler' and 'batch_sampler' in loader):
                raise ConfigError(f'{config.filename}: {path} has no {key}: write {remedy}')
        for place, dataset in _datasets(loader['dataset'], f'{path}.dataset'):
            takes, _ = accepted_parameters(DATASETS.get(dataset['type']))
            for key, remedy in _DATASET.items():
                is_needed = key in takes and not takes[key].default
                if is_needed and key not in dataset and not (is_training and key == 'test_mode'):
                    raise ConfigError(f'{config.filename}: {place} has no {key}: write {remedy}')


def _datasets(value: object, path: str) -> Iterator[tuple[str, dict]]:
    """A data set, and those that it is made of, with their dotted keys."""
    for key, section in sections(value, path):
        name = section.get('type')
        if isinstance(name, str) and DATASETS.get(name) is not None:
            yield key, section
