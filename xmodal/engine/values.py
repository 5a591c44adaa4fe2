"""Values of a config that no run can have, found before anything is built."""

import math
from collections.abc import Callable
from typing import NamedTuple

from mmengine.config import Config

from xmodal.errors import ConfigError


class Rule(NamedTuple):
    """What a key of a config may be.

    Attributes:
        allows: whether a value is possible.
        expected: the possible values in words.
    """

    allows: Callable[[object], bool]
    expected: str


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _whole(least: int) -> Rule:
    return Rule(
        lambda value: type(value) is int and value >= least,
        f'a whole number of at least {least}',
    )


_POSITIVE = Rule(lambda value: _is_number(value) and value > 0, 'a number above 0')
_NOT_NEGATIVE = Rule(lambda value: _is_number(value) and value >= 0, 'a number of at least 0')
_INTERVAL = Rule(
    lambda value: type(value) is int and (value >= 1 or value == -1),
    'a whole number of at least 1, or -1 for never',
)
_KEPT = Rule(_INTERVAL.allows, 'a whole number of at least 1, or -1 for all')
_SEED = Rule(
    lambda value: value is None or (type(value) is int and 0 <= value < 2**32),
    'a whole number from 0 to 2**32 - 1',
)
_FILE = Rule(lambda value: value is None or isinstance(value, str), 'a file name or None')
_NAMES = Rule(
    lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    'a list of names',
)
_SECTION = Rule(lambda value: value is None or isinstance(value, dict), 'a dict')
_SECTIONS = Rule(
    lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value),
    'a list of dicts',
)
_EVALUATOR = Rule(
    lambda value: _SECTION.allows(value) or _SECTIONS.allows(value), 'a dict or a list of dicts'
)

# By dotted key, outer sections first. A key that a config does not have is not checked.
_RULES = {
    'model': _SECTION,
    'train_cfg': _SECTION,
    'train_cfg.max_epochs': _whole(1),
    'train_cfg.max_iters': _whole(1),
    'train_cfg.val_interval': _whole(1),
    **{
        f'{step}_dataloader{key}': rule
        for step in ('train', 'val', 'test')
        for key, rule in {
            '': _SECTION, '.dataset': _SECTION, '.batch_size': _whole(1), '.num_workers': _whole(0),
        }.items()
    },
    'train_dataloader.global_batch_size': _whole(1),
    'val_evaluator': _EVALUATOR,
    'test_evaluator': _EVALUATOR,
    'optim_wrapper': _SECTION,
    'optim_wrapper.accumulative_counts': _whole(1),
    'optim_wrapper.clip_grad': _SECTION,
    'optim_wrapper.clip_grad.max_norm': _POSITIVE,
    'optim_wrapper.optimizer': _SECTION,
    'optim_wrapper.optimizer.lr': _NOT_NEGATIVE,
    'optim_wrapper.optimizer.weight_decay': _NOT_NEGATIVE,
    'default_hooks': _SECTION,
    'default_hooks.checkpoint': _SECTION,
    'default_hooks.checkpoint.interval': _INTERVAL,
    'default_hooks.checkpoint.max_keep_ckpts': _KEPT,
    'default_hooks.logger': _SECTION,
    'default_hooks.logger.interval': _whole(1),
    'custom_hooks': _SECTIONS,
    'randomness': _SECTION,
    'randomness.seed': _SEED,
    'load_from': _FILE,
    'load_from_ignore': _NAMES,
}  # fmt: skip


def check_values(config: Config) -> None:
    """Refuses values that would end a run late, or change it without a word.

    Raises:
        ConfigError: names the key, its value and what was expected.
    """
    for key, rule in _RULES.items():
        *path, name = key.split('.')
        section = config
        for part in path:
            section = section.get(part)
            if section is None:
                break
        if section is not None and name in section and not rule.allows(section[name]):
            raise ConfigError(
                f'{config.filename}: {key}={section[name]!r}, expected {rule.expected}'
            )
