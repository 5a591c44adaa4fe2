"""Values of a config that no run can have, found before anything is built."""

import logging
import multiprocessing
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mmengine.config import Config

from xmodal.errors import ConfigError, shortened
from xmodal.fields import is_number


class Rule(NamedTuple):
    """What a key of a config may be.

    Attributes:
        allows: whether a value is possible.
        expected: the possible values in words.
    """

    allows: Callable[[object], bool]
    expected: str


def _whole(least: int) -> Rule:
    return Rule(
        lambda value: type(value) is int and value >= least,
        f'a whole number of at least {least}',
    )


_POSITIVE = Rule(lambda value: is_number(value) and value > 0, 'a number above 0')
_NOT_NEGATIVE = Rule(lambda value: is_number(value) and value >= 0, 'a number of at least 0')
_INTERVAL = Rule(
    lambda value: type(value) is int and (value >= 1 or value == -1),
    'a whole number of at least 1, or -1 for never',
)
_KEPT = Rule(_INTERVAL.allows, 'a whole number of at least 1, or -1 for all')
_WORKERS = Rule(
    lambda value: _whole(0).allows(value) and value <= 1024, 'a whole number from 0 to 1024'
)
_SEED = Rule(
    lambda value: value is None or (type(value) is int and 0 <= value < 2**32),
    'a whole number from 0 to 2**32 - 1',
)
_SHARE = Rule(lambda value: is_number(value) and 0 <= value <= 1, 'a number from 0 to 1')
_NAMES = Rule(
    lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    'a list of names',
)
_SECTION = Rule(lambda value: isinstance(value, dict | None), 'a dict')


def _with(key: str) -> Rule:
    return Rule(lambda value: isinstance(value, dict) and key in value, f"a dict with '{key}'")


def _or_none(rule: Rule) -> Rule:
    return Rule(lambda value: value is None or rule.allows(value), f'{rule.expected} or None')


def _list_of(rule: Rule) -> Rule:
    return Rule(
        lambda value: isinstance(value, list) and all(map(rule.allows, value)),
        f'a list of dicts, each {rule.expected}',
    )


_DICT = Rule(lambda value: isinstance(value, dict), 'a dict')
_TYPED = _with('type')
_ONE_OR_MORE = Rule(
    lambda value: value is None or _TYPED.allows(value) or _list_of(_TYPED).allows(value),
    "a dict with 'type', or a list of such dicts",
)
_LEVEL = Rule(
    lambda value: isinstance(value, str) and isinstance(logging.getLevelName(value), int),
    "a level of Python's logging, as 'INFO'",
)
_TEXT = Rule(lambda value: isinstance(value, str) and value != '', 'a name')
_SWITCH = Rule(lambda value: isinstance(value, bool), 'True or False')
_COMPILE = Rule(
    lambda value: isinstance(value, bool | dict) or _NAMES.allows(value),
    'True, False, a dict or a list of names',
)
_START_METHOD = Rule(
    lambda value: value in multiprocessing.get_all_start_methods(),
    "'fork', 'spawn' or 'forkserver'",
)
_SYNC_BN = Rule(lambda value: value in ('torch', 'mmcv'), "'torch', 'mmcv'")
_CLIP = Rule(
    lambda value: _with('max_norm').allows(value) or _TYPED.allows(value), "a dict with 'max_norm'"
)
_FUNCTION = Rule(lambda value: callable(value) or _TYPED.allows(value), _TYPED.expected)

# By dotted key, outer sections first; * stands for every key of a section. A key that a config does
# not have is not checked.
_RULES = {
    'model': _SECTION,
    'runner_type': _TEXT,
    'default_scope': _TEXT,
    'work_dir': _TEXT,
    'experiment_name': _or_none(_TEXT),
    'log_level': _LEVEL,
    'load_from': _or_none(_TEXT),
    'load_from_ignore': _NAMES,
    'resume': _SWITCH,
    'find_unused_parameters': _SWITCH,
    'recompute_gelu': _SWITCH,
    'compile': _COMPILE,
    'activation_checkpointing': _NAMES,
    'fsdp': _SECTION,
    'fsdp.units': _NAMES,
    'sync_bn': _or_none(_SYNC_BN),
    'model_wrapper_cfg': _SECTION,
    'train_cfg': _SECTION,
    'train_cfg.max_epochs': _whole(1),
    'train_cfg.max_iters': Rule(  # of MMEngine's IterBasedTrainLoop, in which the epoch stays 0
        lambda value: False, "max_epochs and type='ResumableEpochTrainLoop': hooks count epochs"
    ),
    'train_cfg.val_begin': _whole(0),
    'train_cfg.val_interval': _whole(1),
    **{
        f'{step}_{key}': rule
        for step in ('train', 'val', 'test')
        for key, rule in {
            'cfg': _SECTION, 'cfg.scorer.topk': _or_none(_whole(0)), 'evaluator': _ONE_OR_MORE,
        }.items()
    },
    **{
        f'{loader}{key}': rule
        for loader in (
            'train_dataloader', 'val_dataloader', 'test_dataloader',
            'val_cfg.loops.*.dataloader', 'test_cfg.loops.*.dataloader',
        )
        for key, rule in {
            '': _or_none(_with('dataset')), '.dataset': _TYPED, '.sampler': _or_none(_TYPED),
            '.batch_size': _whole(1), '.num_workers': _WORKERS,
            '.prefetch_factor': _or_none(_whole(1)), '.num_batch_per_epoch': _whole(1),
            '.timeout': _NOT_NEGATIVE, '.collate_fn': _FUNCTION, '.worker_init_fn': _FUNCTION,
        }.items()
    },
    'train_dataloader.global_batch_size': _whole(1),
    'optim_wrapper': _or_none(_with('optimizer')),
    'optim_wrapper.constructor': _TEXT,
    'optim_wrapper.accumulative_counts': _whole(1),
    'optim_wrapper.clip_grad': _or_none(_CLIP),
    'optim_wrapper.clip_grad.max_norm': _POSITIVE,
    'optim_wrapper.optimizer': _TYPED,
    'optim_wrapper.optimizer.lr': _NOT_NEGATIVE,
    'optim_wrapper.optimizer.weight_decay': _NOT_NEGATIVE,
    'param_scheduler': _ONE_OR_MORE,
    'param_scheduler.*.begin': _NOT_NEGATIVE,
    'param_scheduler.*.eta_min': _NOT_NEGATIVE,
    'param_scheduler.*.convert_to_iter_based': _SWITCH,
    'default_hooks': _SECTION,
    'default_hooks.*': _or_none(_TYPED),
    'default_hooks.non_finite.limit': _whole(1),
    'default_hooks.broken_images.limit': _SHARE,
    'default_hooks.*.interval': _INTERVAL,
    'default_hooks.checkpoint.max_keep_ckpts': _KEPT,
    'default_hooks.logger.interval': _whole(1),
    'custom_hooks': _list_of(_TYPED),
    'custom_imports': _SECTION,
    'visualizer': _SECTION,
    'visualizer.vis_backends': _or_none(_list_of(_TYPED)),
    'log_processor': _SECTION,
    'log_processor.by_epoch': _SWITCH,
    'log_processor.window_size': _whole(1),
    'env_cfg': _DICT,
    'env_cfg.cudnn_benchmark': _SWITCH,
    'env_cfg.mp_cfg': _DICT,
    'env_cfg.mp_cfg.mp_start_method': _START_METHOD,
    'env_cfg.mp_cfg.opencv_num_threads': _whole(0),
    'env_cfg.dist_cfg': _DICT,
    'env_cfg.dist_cfg.backend': _TEXT,
    'env_cfg.resource_limit': _whole(1),
    'randomness': _with('seed'),
    'randomness.seed': _SEED,
    'auto_scale_lr': _or_none(_with('base_batch_size')),
}  # fmt: skip


def check_values(config: Config) -> None:
    """Refuses values that would end a run late, or change it without a word.

    Raises:
        ConfigError: names the key, its value and what was expected.
    """
    for pattern, rule in _RULES.items():
        for key, value in _find(config, pattern.split('.')):
            if not rule.allows(value):
                raise ConfigError(
                    f'{config.filename}: {key}={shortened(value)}, expected {rule.expected}'
                )


def check_loops(config: Config) -> None:
    """Refuses a loop that has some of its three sections and lacks others.

    Raises:
        ConfigError: names them.
    """
    parts = {'train': 'optim_wrapper', 'val': 'val_evaluator', 'test': 'test_evaluator'}
    for step, part in parts.items():
        keys = f'{step}_dataloader', f'{step}_cfg', part
        given = [key for key in keys if config.get(key) is not None]
        if given and len(given) < len(keys):
            absent = ', '.join(key for key in keys if key not in given)
            raise ConfigError(
                f'{config.filename}: it has {" and ".join(given)} without {absent}: give all three '
                'or none'
            )


def check_scaling(config: Config) -> None:
    """Refuses a scaled learning rate with accumulated batches, which MMEngine does not count.

    Raises:
        ConfigError: says what to set.
    """
    scaling, wrapper = (config.get(key) or {} for key in ('auto_scale_lr', 'optim_wrapper'))
    if scaling.get('enable') and (count := wrapper.get('accumulative_counts', 1)) > 1:
        raise ConfigError(
            f'{config.filename}: auto_scale_lr goes by the batch of one backward pass, a part of '
            f'that of a step with optim_wrapper.accumulative_counts={count}: leave it out, and set '
            'optim_wrapper.optimizer.lr'
        )


def _find(section: object, path: list[str], prefix: str = '') -> Iterator[tuple[str, object]]:
    """The values of a section that a dotted key stands for, with their own keys."""
    first, *rest = path
    items = dict(enumerate(section)) if isinstance(section, list) else section
    if not isinstance(items, dict | Config):
        return
    for name in list(items) if first == '*' else [first] if first in items else []:
        if rest:
            yield from _find(items[name], rest, f'{prefix}{name}.')
        else:
            yield f'{prefix}{name}', items[name]
