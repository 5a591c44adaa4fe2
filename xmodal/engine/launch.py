"""What `tools/train.py` and `tools/test.py` share: from a command line to a runner."""

import argparse
import os
from pathlib import Path

from mmengine.config import Config, DictAction
from mmengine.registry import init_default_scope
from mmengine.runner import Runner

from xmodal.engine.errors import ConfigError, check_keys
from xmodal.registry import RUNNERS, register_all


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


def load_config(args: argparse.Namespace) -> Config:
    """Reads the config of a command line, with its overrides.

    Raises:
        FileNotFoundError: when the config, or one it inherits from, is not there.
        ConfigError: when it has an unknown top-level key.
    """
    if not Path(args.config).is_file():
        raise FileNotFoundError(
            f'config {args.config} is not there; `ls configs/*/` shows what there is'
        )
    # A launcher that starts this process says its rank in the environment.
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    config = Config.fromfile(args.config)
    if args.cfg_options:
        config.merge_from_dict(args.cfg_options)
    config.launcher = args.launcher
    if args.work_dir:
        config.work_dir = args.work_dir
    config.setdefault('work_dir', f'work_dirs/{Path(args.config).stem}')
    check_keys(config)
    if 'runner_type' not in config:
        raise ConfigError(
            f"{args.config} has no runner_type: inherit from '_base_/default_runtime.py'"
        )
    return config


def build_runner(config: Config) -> Runner:
    """Builds the runner that a config names."""
    register_all()
    init_default_scope(config.default_scope)
    return RUNNERS.get(config.runner_type).from_cfg(config)
