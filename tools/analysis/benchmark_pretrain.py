"""Times a pre-training step with each position against `none`, at the sizes of a config.

    python tools/analysis/benchmark_pretrain.py configs/acerpe/pretrain_4m.py --batch-size 4

Each variant runs in its own process, so that their peak memory can be measured, in alternating
rounds of one step; time ratios are medians over the rounds. Model FLOP utilisation (MFU) is
relative to a large matrix product, timed in the same run; only matrix multiplications count as
FLOPs.
"""

import argparse
import statistics
import tempfile
from functools import partial

import torch
from mmengine.config import Config
from rich.console import Console
from torch.utils.flop_counter import FlopCounterMode

from xmodal.benchmark import (
    TrainingStep,
    Worker,
    alternate,
    default_device,
    make_parser,
    make_table,
    matmul_rate,
    median_ratio,
    write_placeholder_vocabulary,
)
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.memory import recompute_gelu
from xmodal.registry import MODELS, register_all
from xmodal.structures import ImageTextBatch


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('config', help='a pre-training config')
    parser.add_argument(
        '--positions',
        nargs='+',
        default=['none', 'ace_rpe'],
        help='the first is the baseline; the position of the config keeps its settings',
    )
    parser.add_argument('--batch-size', type=at_least(1), default=4, help='pairs of a step')
    parser.add_argument(
        '--words', type=at_least(1), default=30, help='length of a text, [CLS] included'
    )
    parser.add_argument(
        '--repeats', type=at_least(1), default=9, help='rounds that count, after a warm-up'
    )
    parser.add_argument('--amp', action='store_true', help='bfloat16 autocast')
    return parser.parse_args()


def build_model(config: Config, position: str) -> torch.nn.Module:
    """Builds the model of the config with a position, random weights, a placeholder vocabulary."""
    model = config.model
    if model.backbone.position.type != position:
        model.backbone.position = dict(type=position)
    with tempfile.TemporaryDirectory() as folder:
        model.data_preprocessor.tokenizer.pretrained = write_placeholder_vocabulary(folder)
        return MODELS.build(model)


def random_batch(config: Config, size: int, words: int, device: str) -> ImageTextBatch:
    """Makes a batch of random inputs in the shapes of the config, without padding."""
    side = config.model.backbone.image_encoder.image_size
    ids = torch.arange(size, device=device)
    return ImageTextBatch(
        images=torch.randn(size, 3, side, side, device=device),
        input_ids=torch.randint(5, 100, (size, words), device=device),
        attention_mask=torch.ones(size, words, dtype=torch.bool, device=device),
        image_ids=ids,
        text_ids=ids,
        text_image_ids=ids,
    )


class Step(TrainingStep):
    """A training step of one variant.

    Args:
        args: command line.
        position: the position of the variant.
    """

    def __init__(self, args: argparse.Namespace, position: str) -> None:
        register_all()
        torch.manual_seed(0)
        self.device = default_device()
        config = read_config(args.config, 'model')
        self.model = build_model(config, position).to(self.device).train()
        recompute_gelu(self.model)  # as the runner does
        self.model.distillation_weight = 0.4
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=1e-5)
        self.batch = random_batch(config, args.batch_size, args.words, self.device)
        self.amp = args.amp

    def __call__(self) -> None:
        with torch.autocast(self.device, torch.bfloat16, enabled=self.amp):
            losses = self.model(self.batch, mode='loss')
        self.optimizer.zero_grad()
        sum(value for name, value in losses.items() if 'loss' in name).backward()
        self.optimizer.step()
        self.model.update_momentum()

    def flops(self) -> int:
        """Takes a step and returns its FLOPs."""
        with FlopCounterMode(display=False) as counter:
            self()
        return counter.get_total_flops()


def measure(args: argparse.Namespace) -> dict[str, dict]:
    """Measures the seconds of every round, the peak memory and the FLOPs of each variant."""
    workers = {position: Worker(Step, args, position) for position in args.positions}
    timers = {position: partial(worker.call, 'seconds') for position, worker in workers.items()}
    seconds = alternate(timers, args.repeats)
    results = {}
    for position, worker in workers.items():
        memory = worker.call('peak_memory')  # before the counter of FLOPs adds to it
        flops = worker.call('flops')
        results[position] = {'seconds': seconds[position], 'memory': memory, 'flops': flops}
        worker.close()
    return results


def print_table(args: argparse.Namespace, results: dict[str, dict], rate: float) -> None:
    """Prints one row for each variant, compared with the first."""
    base = results[args.positions[0]]
    headings = 'position|step s|time|peak GiB|memory|TFLOP|FLOPs|pairs/s|MFU'.split('|')
    title = f'{args.config}, batch size {args.batch_size}, {args.words} words'
    table = make_table(title, *headings)
    for position, result in results.items():
        seconds = statistics.median(result['seconds'])
        table.add_row(
            position,
            f'{seconds:.3f}',
            f'x {median_ratio(result["seconds"], base["seconds"]):.3f}',
            f'{result["memory"]:.2f}',
            f'x {result["memory"] / base["memory"]:.3f}',
            f'{result["flops"] / 1e12:.3f}',
            f'x {result["flops"] / base["flops"]:.3f}',
            f'{args.batch_size / seconds:.2f}',
            f'{result["flops"] / seconds / rate:.1%}',
        )
    Console(width=120).print(table)


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    read_config(args.config, 'model')  # before the measurement, which takes a while
    dtype = torch.bfloat16 if args.amp else torch.float32
    rate = matmul_rate(default_device(), dtype, size=4096, repeats=4)
    print_table(args, measure(args), rate)


if __name__ == '__main__':
    run_or_explain(main)
