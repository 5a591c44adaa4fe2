"""What the tools share: from a command line to a runner."""

import argparse
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from mmengine.config import Config, DictAction
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from mmengine.utils import import_modules_from_strings

from xmodal.engine.keys import ConfigError, check_keys, check_options
from xmodal.registry import RUNNERS, register_all


class ShowDefaults(argparse.ArgumentDefaultsHelpFormatter):
    """Help texts with the default, where there is one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        nothing = action.default is None or action.default is False
        return action.help if nothing else super()._get_help_string(action)


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of MMEngine's tools."""
    parser.add_argument('--work-dir', help='folder for logs and checkpoints')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        help='override keys of the config: a.b=1 c.d="[1, 2]"',
    )
    parser.add_argument('--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'], default='none')
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)


def read_config(file: str) -> Config:
    """Reads a config, whose ``custom_imports`` may name modules below the working directory.

    Raises:
        FileNotFoundError: when the config, or one it inherits from, is not there.
    """
    if not Path(file).is_file():
        raise FileNotFoundError(f'config {file} is not there; `ls configs/*/` shows what there is')
    # Last, so that a folder of the user's hides no package.
    if not {'', str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))
    return Config.fromfile(file)


def load_config(args: argparse.Namespace) -> Config:
    """Reads the config of a command line, with its overrides.

    Raises:
        FileNotFoundError: when the config, or one it inherits from, is not there.
        ConfigError: when the config has, or the command line adds, a key that nothing reads.
    """
    return apply_arguments(read_config(args.config), args)


def apply_arguments(config: Config, args: argparse.Namespace) -> Config:
    """Merges the common arguments of a command line into a config, and checks its keys.

    Raises:
        ConfigError: when the config has, or the command line adds, a key that nothing reads.
    """
    # A launcher that starts this process says its rank in the environment.
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    if args.cfg_options:
        check_options(config, args.cfg_options)
        config.merge_from_dict(args.cfg_options)
    if imports := config.get('custom_imports'):  # MMEngine imports those of the file alone
        import_modules_from_strings(**imports)
    config.launcher = args.launcher
    if args.work_dir:
        config.work_dir = args.work_dir
    config.setdefault('work_dir', f'work_dirs/{Path(config.filename).stem}')
    check_keys(config)
    if 'runner_type' not in config:
        raise ConfigError(
            f"{config.filename} has no runner_type: inherit from '_base_/default_runtime.py'"
        )
    return config


def build_runner(config: Config) -> Runner:
    """Builds the runner that a config names."""
    register_all()
    init_default_scope(config.default_scope)
    return RUNNERS.build(config)


@contextmanager
def closing_processes() -> Iterator[None]:
    """Closes the connections between processes when a run has ended, or was told to stop.

    Left to Python's own end, a thread of gloo that lets go of a tensor then aborts the process
    ("terminate called without an active exception"). After an error nothing is closed: others may
    be waiting for this process, which is the launcher's to end.
    """
    try:
        yield
    except SystemExit:
        _close_processes()
        raise
    _close_processes()


def _close_processes() -> None:
    gc.collect()  # a wrapped model keeps connections, and is part of a cycle
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
