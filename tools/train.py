"""Trains a config, or a row of a table of ablations.

Usage::

    python tools/train.py configs/acerpe/pretrain_shapes.py
    python tools/train.py --row acerpe/table7:groups_4 --preset 4m
    tools/dist_train.sh configs/acerpe/pretrain_4m.py 8
"""

import argparse
import signal

from xmodal.engine.command_line import add_common_arguments
from xmodal.engine.errors import run_or_explain
from xmodal.engine.imports import quick_imports
from xmodal.engine.lock import work_dir_lock
from xmodal.packaged import find_config


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


def main() -> None:
    """Trains."""
    args = parse_args()
    if args.config:
        find_config(args.config)
    # These take seconds to import; a wrong command line is told at once.
    with quick_imports():
        from xmodal.apis import checkpoint_of
        from xmodal.checkpoint_file import require_checkpoint
        from xmodal.engine.allocator import keep_freed_memory
        from xmodal.engine.beginning import check_row_source, set_beginning
        from xmodal.engine.launch import (
            apply_arguments,
            build_runner,
            closing_processes,
            read_config,
        )
        from xmodal.engine.processes import signals_restored

    if args.row:
        from xmodal.ablation import row_config  # imports the statistics of verdicts, too

        config = row_config(args.row, args.preset)
    else:
        config = read_config(args.config)
    config = apply_arguments(config, args)
    if args.amp and config.get('optim_wrapper'):  # without one it is refused below
        config.optim_wrapper.dtype = 'bfloat16'
    with work_dir_lock(config.work_dir, args.launcher), closing_processes(), signals_restored():
        # Until the training saves at Ctrl-C (PreemptionHook), it ends the process: if Python raised
        # it while MMEngine lays out the config, MMEngine would report an error in the config.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        set_beginning(config, args.resume)
        if config.get('load_from'):  # it may be the name of a model
            config.load_from = str(checkpoint_of(config.load_from))
        if args.row and 'load_from' not in (args.cfg_options or {}):
            check_row_source(config, args.row)
        if config.get('load_from'):
            require_checkpoint(config.load_from)
        keep_freed_memory()
        build_runner(config).train()


if __name__ == '__main__':
    run_or_explain(main)
