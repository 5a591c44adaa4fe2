"""Calculates what a pre-training sends, holds and needs on 1 to 512 GPUs; nothing is measured.

    python tools/analysis/scaling.py configs/acerpe/pretrain_4m.py --gpu a100
    python tools/analysis/scaling.py configs/acerpe/albef_4m.py --gpu h200 --batch-size 64

Parameters and FLOPs are counted on the model of the config; rates of GPUs are their makers'. The
rest is assumed, and said in xmodal/benchmark/scaling.py: gradients are summed in a ring behind the
backward pass, embeddings are waited for, and --mfu of the GPU's rate is reached.
"""

import argparse
import math

from rich.console import Console
from torch import nn

from xmodal.benchmark import make_parser, make_table
from xmodal.benchmark.flops import count_parts
from xmodal.benchmark.pretraining import read_pretraining
from xmodal.benchmark.scaling import (
    GPUS,
    Training,
    describe_training,
    efficiency,
    gathered_bytes,
    gradient_bytes,
    queue_bytes,
    state_bytes,
    step_seconds,
    training_flops,
)
from xmodal.engine.command_line import at_least, positive
from xmodal.engine.errors import run_or_explain

PROCESSES = (1, 2, 8, 16, 32, 64, 128, 256, 512)


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('config', help='a pre-training config of configs/acerpe')
    parser.add_argument('--gpu', choices=GPUS, default='a100', help='its rates')
    parser.add_argument('--batch-size', type=at_least(1), default=64, help='pairs of a GPU')
    parser.add_argument('--mfu', type=positive, default=0.45, help="share of the GPU's rate")
    parser.add_argument(
        '--pairs-per-core', type=positive, default=300, help='by benchmark_data.py, a second'
    )
    return parser.parse_args()


def describe(args: argparse.Namespace) -> tuple[Training, int]:
    """The training, and the length of its queue."""
    config, whole = read_pretraining(args.config)
    backbone = type(whole.backbone)(**config.model.backbone)  # with memory, to count FLOPs
    image_size = config.model.backbone.image_encoder.image_size
    parts = count_parts(backbone, image_size, config.model.data_preprocessor.max_length)
    flops = training_flops(parts, set(whole.heads), whole.teacher is not None)
    lists = [m for m in whole.backbone.modules() if isinstance(m, nn.ModuleList)]
    units = [layer for layers in lists for layer in layers]
    return describe_training(whole, units, flops, args.batch_size), whole.queue.length


def main() -> None:
    """Prints the tables."""
    args = parse_args()
    training, length = describe(args)
    gpu = GPUS[args.gpu]
    print(
        f'{args.config}: {training.parameters / 1e6:.1f} M parameters, '
        f'{training.flops / 1e12:.2f} TFLOP a pair, {training.batch} pairs a GPU; '
        f'a queue of {length:,} pairs holds {queue_bytes(training, length) / 1e6:.0f} MB'
    )
    headings = 'GPUs|gradients MB|gathered MB|computing ms|waiting ms|efficiency|DDP GB|FSDP GB'
    table = make_table(f'{args.gpu}, a step, of each GPU', *headings.split('|'), num_text_columns=0)
    for count in PROCESSES:
        computing, waiting = step_seconds(training, gpu, count, args.mfu)
        table.add_row(
            f'{count}',
            f'{gradient_bytes(training.parameters, count) / 1e6:.0f}',
            f'{gathered_bytes(training, count) / 1e6:.1f}',
            f'{1e3 * computing:.0f}',
            f'{1e3 * waiting:.1f}',
            f'{efficiency(training, gpu, count, args.mfu):.1%}',
            f'{state_bytes(training, count, sharded=False) / 1e9:.2f}',
            f'{state_bytes(training, count, sharded=True) / 1e9:.2f}',
        )
    Console(width=100).print(table)
    pairs = gpu.flops * args.mfu / training.flops
    cores = math.ceil(pairs / args.pairs_per_core)
    print(
        f'A GPU trains {pairs:.0f} pairs a second; at {args.pairs_per_core:g} a core and second, '
        f'{cores} cores feed it'
    )


if __name__ == '__main__':
    run_or_explain(main)
