"""Trains a config.

Usage::

    python tools/train.py configs/acerpe/pretrain_shapes.py
    tools/dist_train.sh configs/acerpe/pretrain_4m.py 8
"""

import argparse
from pathlib import Path

from mmengine.config import Config

from xmodal.engine.checkpoint import latest_checkpoint
from xmodal.engine.errors import ConfigError, run_or_explain
from xmodal.engine.launch import add_common_arguments, build_runner, closing_processes, load_config


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


def set_beginning(config: Config, resume: str | None) -> None:
    """Says where a run begins: anew, or from a checkpoint; never over another run's.

    Raises:
        ConfigError: says how to go on and how to start afresh.
    """
    work_dir = Path(config.work_dir)
    if config.resume and not resume:
        resume = config.load_from or 'auto'
    found = sorted(work_dir.glob('*.pth'))
    checkpoint = latest_checkpoint(work_dir) if resume == 'auto' else resume
    if checkpoint:
        config.resume, config.load_from = True, str(checkpoint)
    if found and not checkpoint:
        raise ConfigError(
            f'{work_dir} holds an earlier run ({found[-1].name}): add --resume to go on with it, '
            'or give another --work-dir'
        )
    if found and Path(checkpoint).resolve().parent != work_dir.resolve():
        raise ConfigError(
            f'{work_dir} holds another run ({found[-1].name}) than {checkpoint}: give a new '
            '--work-dir to go on from there'
        )


def main() -> None:
    """Trains."""
    args = parse_args()
    config = load_config(args)
    if args.amp:
        config.optim_wrapper.dtype = 'bfloat16'
    set_beginning(config, args.resume)
    with closing_processes():
        build_runner(config).train()


if __name__ == '__main__':
    run_or_explain(main)
