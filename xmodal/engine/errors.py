"""From exceptions of a config to one sentence that says what to mend."""

import difflib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable

from mmengine.config import Config

from xmodal import registry

TOP_LEVEL_KEYS = frozenset(
    """model train_dataloader val_dataloader test_dataloader train_cfg val_cfg test_cfg
    auto_scale_lr optim_wrapper param_scheduler val_evaluator test_evaluator default_hooks
    custom_hooks custom_imports data_preprocessor load_from resume launcher env_cfg log_processor
    log_level visualizer default_scope randomness experiment_name work_dir runner_type
    model_wrapper_cfg fsdp find_unused_parameters sync_bn compile activation_checkpointing
    """.split()
)


class ConfigError(ValueError):
    """A config that can't be run, in one sentence."""


def check_keys(config: Config) -> None:
    """Refuses top-level dicts that nothing reads.

    Plain values (numbers, strings, lists) may be a config's own variables and pass.

    Raises:
        ConfigError: names the key and the nearest known one.
    """
    for key, value in config.items():
        if isinstance(value, dict) and key not in TOP_LEVEL_KEYS and _resembles(key):
            raise ConfigError(
                f"{config.filename}: unknown key '{key}'{_nearest(key, TOP_LEVEL_KEYS)}. A dict of "
                'your own that other keys are made of needs a name that resembles none of these.'
            )


def run_or_explain(main: Callable[[], None]) -> None:
    """Runs a tool; an error of the user's input becomes a sentence and exit status 2.

    With ``XMODAL_DEBUG=1`` the traceback is printed as well.
    """
    try:
        main()
    except (ConfigError, KeyError, TypeError, ValueError, OSError, RuntimeError) as error:
        sentence = explain(error)
        if sentence is None:
            raise
        if os.environ.get('XMODAL_DEBUG'):
            traceback.print_exc()
        print(f'error: {sentence}', file=sys.stderr)
        print('(XMODAL_DEBUG=1 shows the traceback)', file=sys.stderr)
        raise SystemExit(2) from None


def explain(error: Exception) -> str | None:
    """The sentence of an error, or None for one that is not the user's to mend."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if found := re.search(r'(\S+) is not in the \S+::(.+?) registry', text):
        name, kind = found.groups()
        known = _registered(kind)
        return (
            f"type='{name}' is not a registered {kind}{_nearest(name, known)}. A component of your "
            "own is found when its module is named: custom_imports=dict(imports=['my.module'])."
        )
    if found := re.search(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", text):
        owner, key = found.groups()
        return f"{owner} takes no key '{key}'{_nearest(key, _arguments(owner))}."
    if found := re.search(r'(\w+)\.__init__\(\) missing .* argument.*?: (.+)', text):
        return f'{found[1]} needs the key(s) {found[2]}, which the config does not give.'
    raised_by_us = isinstance(error, ConfigError | OSError | ValueError | RuntimeError)
    return text if raised_by_us and _is_ours(error) else None


def _is_ours(error: Exception) -> bool:
    """Whether it was raised by xmodal or a tool, or a file that the user named is missing."""
    if isinstance(error, FileNotFoundError):
        return True
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    return bool(frame) and frame.tb_frame.f_globals.get('__name__', '').startswith(
        ('xmodal', 'tools', '__main__')
    )


def _resembles(key: str) -> bool:
    return bool(difflib.get_close_matches(key, TOP_LEVEL_KEYS, cutoff=0.75))


def _nearest(name: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f", did you mean '{matches[0]}'?" if matches else ''


def _registries() -> Iterable[registry._mmengine.Registry]:
    for value in vars(registry).values():
        if isinstance(value, registry._mmengine.Registry):
            yield value


def _registered(kind: str) -> set[str]:
    for found in _registries():
        if found.name == kind:
            return set(found.module_dict) | set(found.parent.module_dict)
    return set()


def _arguments(owner: str) -> list[str]:
    for found in _registries():
        component = found.module_dict.get(owner)
        if component is not None:
            return list(inspect.signature(component).parameters)
    return []
