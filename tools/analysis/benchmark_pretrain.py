"""Times a pre-training step, of positions against each other or against ALBEF's public code.

    python tools/analysis/benchmark_pretrain.py configs/acerpe/pretrain_4m.py --batch-size 4
    python tools/analysis/benchmark_pretrain.py configs/acerpe/albef_4m.py --batch-size 4 --peer DIR

``--peer`` is a checkout of github.com/salesforce/ALBEF. Its step, in float32 as published, is
compared with ours in float32, and with --amp in bfloat16, which start from its weights; first of
all the losses and the gradients of both are compared without dropout, with the same masks and
negatives.

Each variant runs in its own process, in alternating rounds of one step; ratios are medians over the
rounds, with the least and the greatest. Memory is what a step needs at its peak beyond weights,
teacher and moments. Model FLOP utilisation (MFU), of matrix products alone, is relative to a large
product in the variant's precision, timed in the same run.
"""

import argparse
import statistics
from functools import partial
from pathlib import Path
from unittest import mock

import torch
from rich.console import Console
from torch import Tensor, nn

from xmodal.benchmark import (
    TrainingStep,
    Worker,
    add_compile,
    albef_peer,
    alternate,
    call_alone,
    close_and_measure,
    compile_together,
    default_device,
    make_parser,
    make_table,
    matmul_rate,
    ratios_by_round,
)
from xmodal.benchmark.figures import Figures
from xmodal.benchmark.pretraining import PretrainingStep
from xmodal.converters.albef import convert
from xmodal.engine.allocator import keep_freed_memory
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.errors import ConfigError
from xmodal.models.heads.mlm import MaskedText
from xmodal.products import fastest_dtype

PEER, OURS, OURS_BF16 = 'ALBEF', 'xmodal', 'xmodal bf16'
TOLERANCE = 1e-4  # of losses and gradients, relative to the largest
BARS = {  # name of a variant: speed-up over the first, its memory to that of the first
    OURS: ('>= 1.4', '<= 0.8'),
    OURS_BF16: ('>= 2.5', None),
    'ace_rpe': ('>= 0.971', '<= 1.02'),
}
GPU_MFU = '>= 0.45'  # of an H200, in bfloat16


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
    parser.add_argument('--peer', type=Path, help="a checkout of ALBEF's code, in their place")
    parser.add_argument('--batch-size', type=at_least(1), default=4, help='pairs of a step')
    parser.add_argument('--words', type=at_least(2), help="length of a text, else the config's")
    parser.add_argument(
        '--repeats', type=at_least(1), default=9, help='rounds that count, after a warm-up'
    )
    parser.add_argument(
        '--amp', action='store_true', help='bfloat16 autocast; beside --peer a third variant'
    )
    add_compile(parser)
    parser.add_argument('--json', type=Path, help='file for the figures, replaced if it exists')
    return parser.parse_args()


def load_peer(args: argparse.Namespace, ours: PretrainingStep) -> nn.Module:
    """Builds the peer's model in the size of ours, with the same random weights in each process."""
    torch.manual_seed(1)
    model = ours.model
    image_size = model.backbone.image_encoder.image_size
    tokenizer = model.data_preprocessor.tokenizer
    peer = albef_peer.load(args.peer, tokenizer, image_size, model.queue.length)
    return peer.to(default_device())


def build(args: argparse.Namespace, name: str) -> PretrainingStep:
    """Our step of a variant."""
    position, amp = (None, name == OURS_BF16) if args.peer else (name, args.amp)
    sizes = args.batch_size, args.words
    step = PretrainingStep(args.config, position, *sizes, amp, compiled=args.compile)
    keep_freed_memory()  # as tools/train.py does
    if args.peer:
        peer = load_peer(args, step)
        albef_peer.give_weights(convert(albef_peer.weights(peer))[0], step.model)
        albef_peer.give_queue(peer, step.model)
    return step


class PeerStep(TrainingStep):
    """A training step of ALBEF's public code with its own optimizer."""

    def __init__(self, args: argparse.Namespace, name: str) -> None:
        ours = PretrainingStep(args.config, None, args.batch_size, args.words, amp=False)
        self.batch, self.model = ours.batch, load_peer(args, ours).train()
        self.optimizer = albef_peer.make_optimizer(self.model)

    def __call__(self) -> None:
        sum(albef_peer.losses(self.model, self.batch).values()).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()  # where Pretrain.py has it, gradients last to the next step


class Agreement:
    """Our model and the peer's on the same weights, without dropout."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.ours = build(args, OURS)
        self.peer = load_peer(args, self.ours).eval()
        self.ours.model.eval()

    def difference(self) -> float:
        """The largest difference of a loss or a gradient, relative to the largest of its kind."""
        batch, model = self.ours.batch, self.ours.model
        targets = torch.rand(batch.input_ids.shape, device=batch.input_ids.device) < 0.15
        targets[:, :2] = torch.tensor([False, True], device=targets.device)  # [CLS] never is one
        ids = batch.input_ids.masked_fill(targets, model.data_preprocessor.mask_id)
        labels = batch.input_ids.masked_fill(~targets, -100)
        model.heads['mlm'].mask_words = lambda *_: MaskedText(ids, targets)
        self.peer.mask = lambda *_, **__: (ids, labels)
        with mock.patch('torch.multinomial', lambda x, count: x.argmax(-1, keepdim=True)):
            ours, theirs = self.ours.losses(), albef_peer.losses(self.peer, batch)
        for losses in (ours, theirs):
            sum(losses.values()).backward()
        gradients = {
            name.replace('.bert.', '.'): p.grad
            for name, p in self.peer.named_parameters()
            if p.grad is not None and name != 'temp'  # ours is its logarithm
        }
        own = {name: p.grad for name, p in model.named_parameters()}
        return max(largest_difference(ours, theirs), largest_difference(own, convert(gradients)[0]))


def largest_difference(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> float:
    """Over all tensors of the peer, relative to its largest number."""
    differences = [(ours[name] - value).abs().max() for name, value in theirs.items()]
    largest = torch.stack([value.abs().max() for value in theirs.values()]).max()
    return float(torch.stack(differences).max() / largest)


def measure(args: argparse.Namespace, names: list[str]) -> dict[str, dict]:
    """Measures the seconds of every round, the memory and the FLOPs of each variant."""
    builds = {name: PeerStep if name == PEER else build for name in names}
    workers = {name: Worker(builds[name], args, name) for name in names}
    if args.compile:
        compile_together(workers.values())
    timers = {name: partial(worker.call, 'seconds') for name, worker in workers.items()}
    seconds = alternate(timers, args.repeats, warm_up=1)
    results = {name: {'seconds': seconds[name]} for name in names}
    for name in names if torch.cuda.is_available() else ():  # gives back what others need next
        results[name]['at_rest'] = workers[name].call('at_rest')
    for name, worker in workers.items():
        results[name]['flops'] = worker.call('flops')
        results[name]['memory'] = close_and_measure(worker, builds[name], args, name)
    return results


def report(args: argparse.Namespace, results: dict[str, dict], rates: dict[str, float]) -> Figures:
    """Prints one row for each variant, compared with the first."""
    base_name, base = next(iter(results.items()))
    headings = '|step s|speed|from - to|GiB|memory|TFLOP|pairs/s|MFU'.split('|')
    size = f'batch size {args.batch_size}, {args.words or "all"} words'
    table = make_table(f'{args.config}, {size}', *headings)
    figures = Figures(
        'pre-training step' if args.peer else f'positions, {"bfloat16" if args.amp else "float32"}'
    )
    for name, result in results.items():
        seconds = result['seconds']
        ratios = ratios_by_round(base['seconds'], seconds)
        memory, step = result['memory'] / base['memory'], statistics.median(seconds)
        utilisation = result['flops'] / step / rates[name]
        table.add_row(
            name,
            f'{step:.3f}',
            f'x {statistics.median(ratios):.3f}',
            f'{min(ratios):.2f} - {max(ratios):.2f}',
            f'{result["memory"]:.2f}',
            f'x {memory:.3f}',
            f'{result["flops"] / 1e12:.3f}',
            f'{args.batch_size / step:.2f}',
            f'{utilisation:.1%}',
        )
        figures.add(f'{name}, step', seconds, 's')
        on_gpu = 'at_rest' in result
        figures.add(f'{name}, MFU', utilisation, 'share', GPU_MFU if on_gpu and args.amp else None)
        figures.add(f'{name}, memory of a step', result['memory'], 'GiB')
        if on_gpu:
            figures.add(f'{name}, memory between steps', result['at_rest'], 'GiB')
            figures.add(f'{name}, rate', result['flops'] / step / 1e12, 'TFLOP/s')
        if name != base_name:
            of_speed, of_memory = BARS.get(name, (None, None))
            figures.add(f'{name}, speed over {base_name}', ratios, 'x', of_speed)
            figures.add(f'{name}, memory to {base_name}', memory, 'x', of_memory)
    Console(width=120).print(table)
    return figures


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    read_config(args.config, 'model')  # before the measurement, which takes a while
    if args.amp and fastest_dtype(torch.bfloat16, torch.device(default_device())) != torch.bfloat16:
        if not args.peer:
            raise ConfigError('--amp: this processor has no kernels of bfloat16')
        args.amp = False
        print('bfloat16 is left out: this processor has no kernels of it')
    names = [PEER, OURS, *[OURS_BF16] * args.amp] if args.peer else args.positions
    difference = None
    if args.peer:
        difference = call_alone('difference', Agreement, args)
        print(f'losses and gradients differ by {difference:.1e} of the largest')
        if not difference <= TOLERANCE:  # also NaN
            raise ConfigError(f'the losses differ by more than {TOLERANCE}: not the same step')
    rates = {}
    for name in names:
        is_half = name == OURS_BF16 or (args.amp and not args.peer)
        dtype = torch.bfloat16 if is_half else torch.float32
        size = 8192 if torch.cuda.is_available() else 4096
        rates[name] = matmul_rate(default_device(), dtype, size, repeats=4)
    figures = report(args, measure(args, names), rates)
    if difference is not None:
        figures.add('largest difference of losses and gradients', difference, 'share')
    if args.json:
        figures.write(args.json)


if __name__ == '__main__':
    run_or_explain(main)
