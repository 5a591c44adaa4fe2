"""Trains a config.

Usage::

    python tools/train.py configs/acerpe/pretrain_shapes.py
    tools/dist_train.sh configs/acerpe/pretrain_4m.py 8
"""

import argparse
from pathlib import Path

from mmengine.config import Config

from xmodal.engine.errors import ConfigError, run_or_explain
from xmodal.engine.launch import add_common_arguments, build_runner, load_config


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        help='go on from the latest checkpoint of the work dir, or from the one given',
    )
    parser.add_argument('--amp', action='store_true', help='bfloat16 autocast, on any device')
    add_common_arguments(parser)
    return parser.parse_args()


def protect_earlier_run(config: Config) -> None:
    """Refuses to start over in a folder that holds checkpoints.

    Raises:
        ConfigError: says how to go on and how to start afresh.
    """
    found = sorted(Path(config.work_dir).glob('*.pth'))
    if found and not config.resume:
        raise ConfigError(
            f'{config.work_dir} holds an earlier run ({found[-1].name}): add --resume to go on '
            'with it, or give another --work-dir'
        )


def main() -> None:
    """Trains."""
    args = parse_args()
    config = load_config(args)
    if args.amp:
        config.optim_wrapper.dtype = 'bfloat16'
    if args.resume:
        config.resume = True
        config.load_from = None if args.resume == 'auto' else args.resume
    protect_earlier_run(config)
    build_runner(config).train()


if __name__ == '__main__':
    run_or_explain(main)
