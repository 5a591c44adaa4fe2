"""Evaluates a checkpoint on the test set of a config.

Usage::

    python tools/test.py configs/acerpe/pretrain_shapes.py work_dirs/pretrain_shapes/epoch_9.pth
    python tools/test.py acerpe-shapes
    python tools/test.py CONFIG CHECKPOINT --blind image    # what it knows without looking
"""

import argparse
from pathlib import Path

from xmodal.engine.command_line import add_common_arguments, refuse_folder
from xmodal.engine.errors import run_or_explain
from xmodal.engine.imports import quick_imports
from xmodal.files import write_json

WAYS = ('text', 'image', 'shuffle')  # to hide a modality


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file, or the name of a model (docs/zoo.md)')
    parser.add_argument(
        'checkpoint',
        nargs='?',
        help='checkpoint file, the name of a model, or a folder of one (default: the weights of '
        'the model that CONFIG names, or those that its model reads itself)',
    )
    parser.add_argument(
        '--metrics',
        type=Path,
        help='JSON file for the metrics, FILE.json, beside which FILE.queries.npz gets the results '
        'of each query; existing ones are replaced',
    )
    parser.add_argument(
        '--blind',
        choices=WAYS,
        help='hide the texts, or the images, or give every text the image of another one',
    )
    add_common_arguments(parser)
    args = parser.parse_args()
    refuse_folder(parser, '--metrics', args.metrics)
    return args


def main() -> None:
    """Evaluates."""
    args = parse_args()
    # These take seconds to import; a wrong command line is told at once.
    with quick_imports():
        from mmengine.dist import is_main_process

        from xmodal.apis.models import checkpoint_of, needs_checkpoint
        from xmodal.checkpoint_file import require_checkpoint
        from xmodal.engine.blind import blind
        from xmodal.engine.launch import build_runner, closing_processes, load_config
        from xmodal.engine.queries import keep_queries, query_results
        from xmodal.engine.work_dir import has_begun, require_other_folder
        from xmodal.engine.wrappers import unwrap
        from xmodal.errors import ConfigError
        from xmodal.evaluation.queries import queries_file, write_queries
        from xmodal.packaged import is_config_file
        from xmodal.zoo import find_entry, no_model
        from xmodal.zoo.folder import CONFIG

    entry = find_entry(args.config)
    if entry is None and Path(args.config, CONFIG).is_file():
        raise ConfigError(
            f'{args.config} is the folder of a model, not a config with data to test it on: '
            f'xmodal test CONFIG {args.config}'
        )
    if entry is None and not is_config_file(args.config):
        raise no_model(args.config)
    name = args.checkpoint or (args.config if entry else None)
    args.config = str(entry.config_file) if entry else args.config
    config = load_config(args)
    if name is None and needs_checkpoint(config):
        raise ConfigError(f'which checkpoint? xmodal test {args.config} CHECKPOINT')
    if not args.work_dir:  # the folder of a training keeps the config of that training
        config.work_dir = f'{config.work_dir}/test' + (f'_blind_{args.blind}' if args.blind else '')
    if has_begun(config.work_dir):
        raise ConfigError(
            f'{config.work_dir} is the folder of a training, whose config a test would replace: '
            f'give another one, as --work-dir {config.work_dir}/test'
        )
    require_other_folder(config.work_dir, config.filename)
    config.load_from, config.resume = None, False
    if name is not None:
        config.load_from = str(checkpoint_of(name))
        require_checkpoint(config.load_from)
    with closing_processes():
        runner = build_runner(config)
        if args.blind:
            blind(runner.test_loop, args.blind, unwrap(runner.model).data_preprocessor)
        if args.metrics:
            keep_queries(runner.test_loop)
        metrics = runner.test()
        if args.metrics and is_main_process():
            queries = query_results(runner.test_loop)
            write_queries(queries_file(args.metrics), queries, config.load_from)
            write_json(args.metrics, metrics, indent=1)


if __name__ == '__main__':
    run_or_explain(main)
