"""Trains a config, or a row of a table of ablations.

Usage::

    python tools/train.py configs/acerpe/pretrain_shapes.py
    python tools/train.py --row acerpe/table7:groups_4 --preset 4m
    tools/dist_train.sh configs/acerpe/pretrain_4m.py 8
"""

import argparse
from pathlib import Path

from mmengine.config import Config

from xmodal.ablation import row_config
from xmodal.checkpoint_file import require_checkpoint
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import (
    add_common_arguments,
    apply_arguments,
    build_runner,
    closing_processes,
    read_config,
)
from xmodal.engine.lock import work_dir_lock
from xmodal.engine.work_dir import latest_checkpoint
from xmodal.errors import ConfigError


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument('config', nargs='?', help='config file')
    source.add_argument(
        '--row',
        metavar='TABLE:ROW[:STAGE]',
        help='instead of a config: a row of a table of ablations, as acerpe/table7:groups_4, and '
        'its stage (default: the first that the row changes)',
    )
    parser.add_argument('--preset', help="of the row (default: its table's first)")
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        help='continue from the latest checkpoint of the work dir, or from the one given',
    )
    parser.add_argument('--amp', action='store_true', help='bfloat16 autocast, on any device')
    add_common_arguments(parser)
    args = parser.parse_args()
    if args.preset and not args.row:
        parser.error('--preset needs --row: a config file has no presets')
    return args


def check_row_source(config: Config, row: str) -> None:
    """Refuses a stage of a row whose checkpoint to start from is missing.

    Raises:
        ConfigError: names the checkpoint, and how to get it.
    """
    if config.get('resume') or not config.get('load_from') or Path(config.load_from).is_file():
        return
    table, name, *_ = row.split(':')
    stage = Path(config.load_from).parent.name
    raise ConfigError(
        f'{row} starts from {config.load_from}, which does not exist: train stage {stage} first '
        f'(--row {table}:{name}:{stage}), give another checkpoint by --cfg-options load_from=FILE, '
        f'or train all stages by tools/ablate.py {table} --only {name}'
    )


def set_beginning(config: Config, resume: str | None) -> None:
    """Sets the checkpoint that a run starts from, if any; never overwrites another run.

    Raises:
        ConfigError: says how to resume, and how to start a new run.
        FileNotFoundError: if the checkpoint to resume is missing.
        ValueError: if no checkpoint of the run is whole.
    """
    work_dir = Path(config.work_dir)
    if config.get('resume') and not resume:
        resume = config.get('load_from') or 'auto'
    existing = sorted(work_dir.glob('*.pth'))
    checkpoint = latest_checkpoint(work_dir) if resume == 'auto' else resume
    if checkpoint:
        require_checkpoint(checkpoint)
        config.resume, config.load_from = True, str(checkpoint)
    if existing and not checkpoint:
        raise ConfigError(
            f'{work_dir} holds an earlier run ({existing[-1].name}): add --resume to continue it, '
            'or give another --work-dir'
        )
    if existing and Path(checkpoint).resolve().parent != work_dir.resolve():
        raise ConfigError(
            f'{work_dir} holds another run ({existing[-1].name}) than {checkpoint}: give a new '
            '--work-dir to continue from there'
        )


def main() -> None:
    """Trains."""
    args = parse_args()
    config = apply_arguments(
        row_config(args.row, args.preset) if args.row else read_config(args.config), args
    )
    if args.amp:
        config.optim_wrapper.dtype = 'bfloat16'
    with work_dir_lock(config.work_dir, args.launcher), closing_processes():
        set_beginning(config, args.resume)
        if args.row:
            check_row_source(config, args.row)
        if config.get('load_from'):
            require_checkpoint(config.load_from)
        build_runner(config).train()


if __name__ == '__main__':
    run_or_explain(main)
