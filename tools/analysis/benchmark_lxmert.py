"""Times a pre-training step of LXMERT against transformers, or against LXMERT's public code.

    python tools/analysis/benchmark_lxmert.py configs/lxmert/pretrain_released.py --batch-size 8
    python tools/analysis/benchmark_lxmert.py configs/lxmert/pretrain_released.py --peer DIR

``--peer`` is a checkout of github.com/airsplay/lxmert, in the place of LxmertForPreTraining of
transformers. Both sides have the same size and weights, get the same random inputs, mask words and
regions in the same way and have the same losses, which are compared first, without dropout. Ours
has the config's optimizer, the public code its BertAdam, and transformers PyTorch's AdamW.

Each side runs in its own process, in alternating rounds of one step; ratios are medians over the
rounds, with the least and the greatest. Memory is what a step needs at its peak beyond weights and
moments.
"""

import argparse
import statistics
from functools import partial
from pathlib import Path

import torch
from mmengine.optim import build_optim_wrapper
from rich.console import Console
from torch import Tensor, nn

from xmodal.benchmark import (
    TrainingStep,
    Worker,
    add_compile,
    alternate,
    call_alone,
    close_and_measure,
    default_device,
    lxmert_peer,
    make_parser,
    make_table,
    ratios_by_round,
)
from xmodal.benchmark.figures import Figures
from xmodal.benchmark.lxmert_models import build_model, build_other, random_batch
from xmodal.converters.lxmert import convert
from xmodal.engine.allocator import keep_freed_memory
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.layers import compile_layers, recompute_gelu
from xmodal.errors import ConfigError
from xmodal.registry import register_all
from xmodal.structures import DataSample

SIDES = ('transformers', 'xmodal')
TOLERANCE = 1e-4  # of the sum of the losses, relative


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser, count = make_parser(__doc__), dict(type=at_least(1))
    parser.add_argument('config', help='a pre-training config')
    parser.add_argument('--batch-size', **count, default=8, help='pairs of a step')
    parser.add_argument('--regions', **count, default=36, help='regions of an image')
    parser.add_argument('--words', **count, default=20, help='length of a text, [CLS] included')
    parser.add_argument('--answers', **count, default=9500, help='size of the answer table')
    parser.add_argument('--width', **count, help="instead of the config's 768; heads are 64 wide")
    parser.add_argument('--vocabulary', **count, default=30522, help='words of the text encoder')
    parser.add_argument('--repeats', **count, default=7, help='rounds that count, after a warm-up')
    parser.add_argument('--amp', action='store_true', help='bfloat16 autocast')
    add_compile(parser)
    parser.add_argument('--peer', type=Path, help="a checkout of LXMERT's public code")
    parser.add_argument('--json', type=Path, help='file for the figures, replaced if it exists')
    return parser.parse_args()


class Step(TrainingStep):
    """A training step of one side.

    Args:
        args: command line.
        side: one of ``SIDES``; the first is the other one, of transformers or of the peer.
    """

    def __init__(self, args: argparse.Namespace, side: str) -> None:
        register_all()
        torch.manual_seed(0)
        self.device, self.args = default_device(), args
        ours = build_model(args).to(self.device)
        self.batch = random_batch(args, ours, self.device)
        self.samples = [DataSample() for _ in range(args.batch_size)]
        for sample in self.samples:
            sample.answers, sample.answer_weights = ['answer 1'], [1.0]
        self.ours, self.is_ours = ours, side != SIDES[0]
        self.other = build_other(args, ours).to(self.device)
        ours.load_state_dict(convert(self.other.state_dict(), ours.state_dict())[0])
        self.model: nn.Module = ours if self.is_ours else self.other

    def prepare(self) -> 'Step':
        """Drops the other side, and makes the optimizer."""
        if self.is_ours:
            self.other = None
            recompute_gelu(self.ours)  # as the runner does
            compile_layers(self.ours, self.args.compile)
            keep_freed_memory()  # as tools/train.py does
            dtype = 'bfloat16' if self.args.amp else None
            config = read_config(self.args.config, 'model').optim_wrapper
            self.wrapper = build_optim_wrapper(self.ours, {**config, 'dtype': dtype})
        else:
            self.ours.backbone = None  # only the heads are needed, for the masking
            make = lxmert_peer.make_optimizer if self.args.peer else torch.optim.AdamW
            self.optimizer = make(self.model.parameters())
        self.model.train()
        return self

    def __call__(self) -> None:
        if self.is_ours:
            with self.wrapper.optim_context(self.model):
                loss = self.xmodal_loss()
            self.wrapper.update_params(loss)
            return
        with torch.autocast(self.device, torch.bfloat16, enabled=self.args.amp):
            loss = self.other_loss()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # as both recipes do
        self.optimizer.step()
        self.optimizer.zero_grad()

    def xmodal_loss(self) -> Tensor:
        """Computes the sum of the losses of our model."""
        losses = self.ours(self.batch, self.samples, mode='loss')
        return sum(value for name, value in losses.items() if 'loss' in name)

    def other_loss(self) -> Tensor:
        """Computes the sum of the losses of the other side, for the same tasks."""
        regions, shown = self.batch.images, self.ours.show(self.batch)
        masked, matched = shown.batch, shown.matched
        labels, ignored = regions.labels, -1 if self.args.peer else -100
        inputs = dict(
            input_ids=masked.input_ids,
            attention_mask=masked.attention_mask.long(),
            visual_feats=masked.images.features,
            visual_pos=masked.images.boxes,
            labels=shown.input_ids.masked_fill(~shown.masked_words, ignored),
            obj_labels={
                'obj': (labels.objects, labels.object_confidences),
                'attr': (labels.attributes, labels.attribute_confidences),
                'feat': (regions.features, shown.masked_regions.float()),
            },
            matched_label=matched.long(),
            ans=torch.ones_like(matched.long()).masked_fill(~matched, ignored),
        )
        return lxmert_peer.loss(self.other, inputs) if self.args.peer else self.other(**inputs).loss

    def difference(self) -> float:
        """The relative difference of both sides' sums of losses, without dropout."""
        sums = []
        for model, loss in ((self.ours, self.xmodal_loss), (self.other, self.other_loss)):
            model.eval()
            torch.manual_seed(1)  # the same texts are replaced, the same words masked
            with torch.no_grad():
                sums.append(loss())
        return float((sums[0] - sums[1]).abs() / sums[1])


def ready_step(args: argparse.Namespace, side: str) -> Step:
    """A step that can be taken."""
    return Step(args, side).prepare()


def measure(args: argparse.Namespace) -> dict[str, dict]:
    """Measures the seconds of every round and the memory of each side."""
    workers = {side: Worker(ready_step, args, side) for side in SIDES}
    timers = {side: partial(worker.call, 'seconds') for side, worker in workers.items()}
    seconds = alternate(timers, args.repeats)
    return {
        side: {
            'seconds': seconds[side],
            'memory': close_and_measure(worker, ready_step, args, side),
        }
        for side, worker in workers.items()
    }


def report(args: argparse.Namespace, results: dict[str, dict]) -> Figures:
    """Prints one row for each side, compared with the other one."""
    base, names = results[SIDES[0]], {SIDES[0]: 'public code' if args.peer else SIDES[0]}
    size = f'batch size {args.batch_size}, {args.regions} regions, {args.words} words'
    headings = ('', 'step s', 'speed-up', 'from - to', 'GiB', 'memory', 'pairs/s')
    table, figures = make_table(f'{args.config}, {size}', *headings), Figures('step of LXMERT')
    for side, result in results.items():
        name, seconds = names.get(side, side), result['seconds']
        ratios = ratios_by_round(base['seconds'], seconds)
        memory = result['memory'] / base['memory']
        table.add_row(
            name,
            f'{statistics.median(seconds):.3f}',
            f'x {statistics.median(ratios):.3f}',
            f'{min(ratios):.2f} - {max(ratios):.2f}',
            f'{result["memory"]:.2f}',
            f'x {memory:.3f}',
            f'{args.batch_size / statistics.median(seconds):.2f}',
        )
        figures.add(f'{name}, step', seconds, 's')
        figures.add(f'{name}, memory of a step', result['memory'], 'GiB')
        if side != SIDES[0]:
            bar = '>= 1.5' if torch.cuda.is_available() else '>= 1.35'
            figures.add(f'speed over {names[SIDES[0]]}', ratios, 'x', bar)
            figures.add(f'memory to {names[SIDES[0]]}', memory, 'x')
    Console(width=120).print(table)
    return figures


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    read_config(args.config, 'model')  # before any process starts
    difference = call_alone('difference', Step, args, SIDES[1])
    print(f'the sums of the losses differ by {difference:.1e}')
    if not difference <= TOLERANCE:
        raise ConfigError(f'the losses differ by more than {TOLERANCE}: not the same step')
    figures = report(args, measure(args)).add('difference of the losses', difference, 'share')
    if args.json:
        figures.write(args.json)


if __name__ == '__main__':
    run_or_explain(main)
