"""Measures how time, memory and traffic of a step grow with its sizes and with the processes.

    OMP_NUM_THREADS=1 python tools/analysis/benchmark_scaling.py sizes configs/acerpe/pretrain_4m.py
    python tools/analysis/benchmark_scaling.py sketches configs/temde/saf_temde_f30k.py
    python tools/analysis/benchmark_scaling.py processes configs/acerpe/pretrain_shapes.py

``sizes`` changes batch, image size and length of the texts of a pre-training step, one at a time,
by each of ``--factors``; ``sketches`` does so with N (partitions) and K (centroids) of a training
step and of the scoring of all pairs of a batch, with T-EMDE. Every step runs in a process
of its own, beside that of the config's sizes, in alternating rounds. The exponent p, of size^p, is
that of the growth from the config's size: 1 is linear, 2 quadratic. Seconds are CPU seconds, to
which other work on the machine does not add, or on a GPU seconds. Memory is what a step needs at
its peak beyond weights, teacher and moments, gradients included. Unlike tools/train.py, the steps
keep no freed memory, so that two of a large model fit beside each other.

``processes`` trains with the same batch in each of them, alone, with DDP and with FSDP, one after
the other. Beside what a process holds, and sends by what it hands to torch.distributed, stands the
calculation of scaling.py: it knows weights, gradients and moments, but no activations. Processes on
a CPU have one thread each and share its cores, and the memory's bandwidth.
"""

import argparse
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from torch import nn

from xmodal.benchmark import default_device, describe_device, make_parser
from xmodal.benchmark.figures import Figures
from xmodal.benchmark.growth import measure_growth, report_growth
from xmodal.benchmark.pretraining import PretrainingStep, read_pretraining
from xmodal.benchmark.scaling import describe_training
from xmodal.benchmark.sketches import SketchScoring, SketchTraining
from xmodal.benchmark.weak_scaling import measure_processes, report_processes
from xmodal.engine.command_line import at_least, positive
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.layers import find_modules
from xmodal.errors import ConfigError


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    commands = parser.add_subparsers(dest='command', required=True)
    for name, kind, batch, factors in (
        ('sizes', 'a pre-training config', 2, [0.5, 1.5]),
        ('sketches', 'a config of SAF or SGR with T-EMDE', 32, [0.25, 4]),
        ('processes', 'a pre-training config', 2, None),
    ):
        command = commands.add_parser(name, formatter_class=parser.formatter_class)
        command.add_argument('config', help=kind)
        command.add_argument('--batch-size', type=at_least(1), default=batch, help='pairs')
        command.add_argument('--repeats', type=at_least(1), default=3, help='rounds that count')
        command.add_argument(
            '--json', type=Path, help='file for the figures, replaced if it exists'
        )
        if factors:
            command.add_argument(
                '--factors', type=positive, nargs='+', default=factors, help="of the config's"
            )
        else:
            command.add_argument(
                '--processes', type=at_least(2), nargs='+', default=[2], help='beside one alone'
            )
            command.add_argument(
                '--units',
                nargs='+',
                default=['Block', 'BertLayer', 'FusionLayer'],
                help='classes that FSDP gathers one at a time, as fsdp.units of a config',
            )
    return parser.parse_args()


def others(args: argparse.Namespace, base: Mapping[str, int]) -> dict[str, list[int]]:
    """The sizes to compare with those of the base.

    Raises:
        ConfigError: where a size would be less than 1, or none would differ from the base.
    """
    sizes = {what: [int(own * factor) for factor in args.factors] for what, own in base.items()}
    for what, values in sizes.items():
        if min(values) < 1:
            raise ConfigError(f'--factors: {what} {base[what]} becomes {min(values)}, expected 1')
        if set(values) == {base[what]}:
            raise ConfigError(f'--factors: {what} stays {base[what]}, expected another size')
    return sizes


def pretraining_sizes(model: nn.Module, batch: int) -> dict[str, int]:
    """The sizes of a pre-training step."""
    encoder, words = model.backbone.image_encoder, model.data_preprocessor.max_length
    return {'batch': batch, 'image size': encoder.image_size, 'words': words}


def check_pretraining(model: nn.Module, sizes: Mapping[str, list[int]]) -> None:
    """Raises ConfigError where the model takes no input of a size."""
    mim = model.heads['mim'] if 'mim' in model.heads else None
    side = mim.block if mim else model.backbone.image_encoder.patch_size
    most = model.backbone.text_encoder.config.max_position_embeddings
    for size in sizes['image size']:
        if size % side:
            raise ConfigError(f'--factors: image size {size}, expected a multiple of {side}')
    for size in sizes['words']:
        if not 2 <= size <= most:
            raise ConfigError(f'--factors: {size} words, expected 2 to {most} in this config')


def build_pretraining(config: str, sizes: Mapping[str, int]) -> PretrainingStep:
    """The pre-training step of some sizes."""
    batch, image_size, words = sizes.values()
    return PretrainingStep(config, None, batch, words, amp=False, image_size=image_size)


def sketch_sizes(config: str) -> dict[str, int]:
    """The sizes of T-EMDE in a config.

    Raises:
        ConfigError: if the config has none.
    """
    similarity = read_config(config, 'model').model.get('similarity', {})
    pooling = similarity.get('global_pooling', {}).get('pooling', {})
    if pooling.get('type') != 'TEMDE':
        raise ConfigError(
            f'{config}: model.similarity.global_pooling.pooling is {pooling or None}, expected '
            "dict(type='TEMDE', …)"
        )
    return {key: pooling[key] for key in ('partitions', 'centroids')}


def measure_sizes(
    args: argparse.Namespace,
    parts: Mapping[str, Callable],
    base: Mapping[str, int],
    sizes: Mapping[str, list[int]],
) -> Figures:
    """Measures the growth of each part with each size, and prints a table."""
    figures = Figures(f'growth with the sizes of {Path(args.config).name}')
    title = ', '.join(f'{what} {size}' for what, size in base.items())
    growth = {
        part: measure_growth(partial(build, args.config), base, sizes, args.repeats)
        for part, build in parts.items()
    }
    unit = 's' if torch.cuda.is_available() else 'CPU s'
    title = f'{args.config}; base: {title}; {describe_device(default_device())}'
    Console(width=100).print(report_growth(title, unit, growth, figures))
    return figures


def scale_processes(args: argparse.Namespace) -> Figures:
    """Measures one process and several, and prints a table.

    Raises:
        ConfigError: for more processes than GPUs, or units that the model does not have.
    """
    _, model = read_pretraining(args.config)
    units = find_modules('--units', model, args.units)
    if torch.cuda.is_available() and max(args.processes) > torch.cuda.device_count():
        raise ConfigError(
            f'--processes {max(args.processes)}, expected at most the number of GPUs, '
            f'{torch.cuda.device_count()}'
        )
    if not torch.cuda.is_available():
        print(f'processes share the {os.cpu_count()} cores of this machine, one thread each')
    training = describe_training(model, units, flops=0, batch=args.batch_size)
    variants = [(1, None), *((n, units) for n in args.processes for units in (None, args.units))]
    rows = [
        measure_processes(*variant, args.config, args.batch_size, args.repeats)
        for variant in variants
    ]
    figures = Figures(f'processes of {Path(args.config).name}')
    title = f'{args.config}, {args.batch_size} pairs a process'
    Console(width=100).print(report_processes(title, training, rows, figures))
    return figures


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    if args.command == 'processes':
        figures = scale_processes(args)
    elif args.command == 'sketches':
        sketch = sketch_sizes(args.config)
        base = {'batch': args.batch_size, **sketch}
        parts = {'training': SketchTraining, 'scoring': SketchScoring}
        figures = measure_sizes(args, parts, base, others(args, sketch))
    else:
        _, model = read_pretraining(args.config)
        base = pretraining_sizes(model, args.batch_size)
        sizes = others(args, base)
        check_pretraining(model, sizes)
        figures = measure_sizes(args, {'step': build_pretraining}, base, sizes)
    if args.json:
        figures.write(args.json)


if __name__ == '__main__':
    run_or_explain(main)
