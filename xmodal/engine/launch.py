"""From a command line to a runner, for all tools."""

import argparse
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner import Runner

from xmodal.engine.components import check_components
from xmodal.engine.keys import check_keys, check_options
from xmodal.engine.needed import check_needed
from xmodal.engine.sources import import_custom_modules, read_sources
from xmodal.engine.values import check_loops, check_scaling, check_values
from xmodal.errors import ConfigError, shortened
from xmodal.packaged import find_config
from xmodal.registry import RUNNERS, SCOPE, register_all


def read_config(file: str, *needed: str) -> Config:
    """Reads a config and imports its ``custom_imports``, also from the working directory.

    Args:
        file: the config; ``xmodal::acerpe/pretrain_4m.py`` is one of the package.
        needed: keys that the caller reads.

    Raises:
        FileNotFoundError: if the config does not exist.
        ConfigError: if it, one that it inherits from, or a module of ``custom_imports`` cannot be
            read, or it lacks a key.
    """
    file = str(find_config(file))
    # At the end, so that no folder of the user's hides a package.
    if not {'', str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))
    config = read_sources(file)
    import_custom_modules(config)
    for key in needed:
        if config.get(key) is None:
            raise ConfigError(f"{file} has no '{key}', which is needed here")
    return config


def load_config(args: argparse.Namespace) -> Config:
    """Reads the config of a command line and applies its overrides.

    Raises:
        FileNotFoundError: if the config, or one that it inherits from, does not exist.
        ConfigError: if the config has, or the command line adds, a key that nothing reads.
    """
    return apply_arguments(read_config(args.config), args)


def apply_arguments(config: Config, args: argparse.Namespace) -> Config:
    """Merges the common arguments of a command line into a config, and checks its keys.

    Raises:
        ConfigError: when the config has, or the command line adds, a key that nothing reads.
    """
    # A launcher that starts this process gives its rank in the environment.
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    options = args.cfg_options or {}
    if 'launcher' in options:
        raise ConfigError(
            f'--cfg-options launcher={options["launcher"]}: it is an argument of its own, '
            f'--launcher {options["launcher"]}'
        )
    merge_options(config, options)
    config.launcher = args.launcher
    if args.work_dir:
        config.work_dir = args.work_dir
    set_work_dir(config)
    check_values(config)
    check_keys(config)
    return config


def set_work_dir(config: Config) -> str:
    """The folder of the runs of a config: its own ``work_dir``, or one with its name."""
    return config.setdefault('work_dir', f'work_dirs/{Path(config.filename).stem}')


def merge_options(config: Config, options: dict[str, object]) -> None:
    """Merges the options of a command line into a config, and imports its ``custom_imports``.

    Args:
        config: changed in place.
        options: values by dotted key.

    Raises:
        ConfigError: when an option fits no key of the config, or a module cannot be imported.
    """
    check_options(config, options)
    try:
        config.merge_from_dict(options)
    except (TypeError, AttributeError, LookupError) as error:
        given = ', '.join(f'{key}={shortened(value)}' for key, value in options.items())
        raise ConfigError(f'--cfg-options {given}: {error}') from error
    import_custom_modules(config)  # the options, or a row of a table, may have added some


def build_runner(config: Config) -> Runner:
    """Builds the runner that a config names.

    Raises:
        ConfigError: if the config lacks a key, or has a value that the part which takes it refuses.
    """
    register_all()
    init_default_scope(config.setdefault('default_scope', SCOPE))
    check_loops(config)
    check_scaling(config)
    check_needed(config)
    check_components(config)
    return RUNNERS.build(config)


@contextmanager
def closing_processes() -> Iterator[None]:
    """Closes the connections between processes at the end of a run or after a preemption.

    If Python closes them at exit, a thread of gloo that frees a tensor aborts the process
    ("terminate called without an active exception"). After an error nothing is closed: other
    processes may be waiting for this one, and the launcher ends it.
    """
    try:
        yield
    except SystemExit:
        _close_processes()
        raise
    _close_processes()


def _close_processes() -> None:
    if torch.distributed.is_initialized():
        gc.collect()  # a wrapped model keeps connections, and is part of a reference cycle
        torch.distributed.destroy_process_group()
