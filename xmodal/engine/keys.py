"""Keys of a config that nothing would read."""

import difflib
from collections.abc import Iterable, Iterator

from mmengine.config import Config

TOP_LEVEL_KEYS = frozenset(
    """model train_dataloader val_dataloader test_dataloader train_cfg val_cfg test_cfg
    auto_scale_lr optim_wrapper param_scheduler val_evaluator test_evaluator default_hooks
    custom_hooks custom_imports data_preprocessor load_from resume launcher env_cfg log_processor
    log_level visualizer default_scope randomness experiment_name work_dir runner_type
    model_wrapper_cfg fsdp find_unused_parameters sync_bn compile activation_checkpointing
    """.split()
)
# Of those that MMEngine reads key by key, without a class that would refuse another.
_KEYS_OF = {
    'randomness': ('seed', 'diff_rank_seed', 'deterministic'),
    'env_cfg': ('cudnn_benchmark', 'mp_cfg', 'dist_cfg', 'resource_limit'),
}


class ConfigError(ValueError):
    """A config that can't be run, in one sentence."""


def check_keys(config: Config) -> None:
    """Refuses top-level dicts that nothing reads.

    Plain values (numbers, strings, lists) may be a config's own variables and pass.

    Raises:
        ConfigError: names the key and the nearest known one.
    """
    for key, value in config.items():
        if isinstance(value, dict) and key not in TOP_LEVEL_KEYS:
            if near := nearest(key, TOP_LEVEL_KEYS, cutoff=0.75):
                raise ConfigError(
                    f"{config.filename}: unknown key '{key}', did you mean '{near}'? A dict of "
                    'your own that other keys are made of needs a name that resembles none of '
                    'these.'
                )
    for section, known in _KEYS_OF.items():
        for key in config.get(section) or ():
            if key not in known:
                raise ConfigError(f'{config.filename}: {section} {no_key(key, known)}')


def check_options(config: Config, options: dict[str, object]) -> None:
    """Refuses options of a command line that would make a key nothing reads.

    Args:
        config: before the options are laid over it.
        options: values by dotted key.

    Raises:
        ConfigError: names the option and the nearest keys of the config.
    """
    for option in options:
        first, *_ = names = option.split('.')
        if first not in config and first not in TOP_LEVEL_KEYS:
            raise ConfigError(
                f"--cfg-options {option}: unknown key '{first}'{_hint(first, config)}"
            )
        section, path = config, ''
        for name in names[:-1]:
            if not isinstance(section, dict | Config):
                break
            if name not in section:
                # A new dict is of use where something reads its name. One without a type, beside
                # one of nearly the same name, is a slip.
                others = [key for key, value in section.items() if isinstance(value, dict)]
                near = nearest(name, others, cutoff=0.75)
                if path and near and f'{path}{name}.type' not in options:
                    raise ConfigError(
                        f"--cfg-options {option}: unknown key '{path}{name}', did you mean "
                        f"'{path}{near}'?"
                    )
                break
            section, path = section[name], f'{path}{name}.'


def no_key(key: str, known: Iterable[str]) -> str:
    """That something takes no such key, with the nearest one or else all."""
    near = nearest(key, known)
    hint = f", did you mean '{near}'?" if near else f'; it takes {", ".join(known)}'
    return f"takes no key '{key}'{hint}"


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most like another, or None."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)), None)


def _hint(name: str, config: Config) -> str:
    """Where in the config, or at its top, a key of this name is; else the config's sections."""
    places: dict[str, list[str]] = {}
    for path in (*_paths(config), *(TOP_LEVEL_KEYS - config.keys())):
        places.setdefault(path.rpartition('.')[2], []).append(path)
    near = nearest(name, places, cutoff=0.7)
    if near is None:
        sections = ', '.join(key for key, value in config.items() if isinstance(value, dict))
        return f'; the config has {sections}'
    return f', did you mean {" or ".join(repr(path) for path in places[near][:3])}?'


def _paths(section: Config | dict, prefix: str = '') -> Iterator[str]:
    """The dotted keys of a config."""
    for key, value in section.items():
        yield f'{prefix}{key}'
        if isinstance(value, dict):
            yield from _paths(value, f'{prefix}{key}.')
