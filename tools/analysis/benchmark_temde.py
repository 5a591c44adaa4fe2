"""Times SAF, SGR and SGRAF with self-attention and with T-EMDE (T-EMDE, Table 3).

    OMP_NUM_THREADS=1 python tools/analysis/benchmark_temde.py

* loop: over captions, as in public implementations of SGRAF and in Listing 1
  (`xmodal.benchmark.sgraf_loop`);
* ours: `xmodal.models.sgraf`, in float32. Its logits must be equal to those of the loop.

The models are those of `configs/temde`, with random weights; inputs are random, captions have the
lengths of those of Flickr30K and COCO.

A test is the scoring of all pairs, without the encoders. Some images and captions are scored, and
the time for a test set is extrapolated: the costs of an image, of a caption and of a pair of an
image and a word are weighted by their numbers there. The loop has shards of 100 x 100, and the
first two anew in each. SGRAF averages the scores of SAF and SGR: its time is the sum of theirs. A
training step has encoders, all pairs of a batch, loss, gradients and optimizer.

All variants of a model run in alternating rounds; times are medians, on a CPU in CPU seconds, to
which other work on the machine does not add. "saved" is the share of the time that T-EMDE saves:
the median over the rounds, with the quartiles.
"""

import argparse
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import product

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import normalize
from torch.optim import Adam

from xmodal.benchmark import (
    add_device,
    alternate,
    cpu_seconds_of,
    describe_device,
    make_parser,
    make_table,
    seconds_of,
)
from xmodal.benchmark.sgraf_costs import (
    REGIONS,
    TEST_SETS,
    WIDTH,
    SetSize,
    caption_lengths,
    extrapolate,
)
from xmodal.benchmark.sgraf_loop import LiteralLoop
from xmodal.benchmark.sgraf_tiled import TiledScoring
from xmodal.benchmark.sgraf_training import build_model, random_batch, train_step
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.registry import register_all

DATA = {'Flickr30K': 'f30k', 'COCO': 'coco'}  # as in the names of configs
POOLINGS = ('self_attention', 'temde')
IMPLEMENTATIONS = {'loop': LiteralLoop, 'ours': TiledScoring}

# The paper's times, self-attention and T-EMDE.
PAPER_TESTS = {  # seconds
    ('SAF', 'Flickr30K'): (69.68, 59.68),
    ('SAF', 'COCO 1K'): (68.1, 58.1),
    ('SAF', 'COCO 5K'): (1725.8, 1457.6),
    ('SGR', 'Flickr30K'): (83.6, 75.4),
    ('SGR', 'COCO 1K'): (84.0, 74.9),
    ('SGR', 'COCO 5K'): (2075.0, 1830.2),
    ('SGRAF', 'Flickr30K'): (161.4, 135.5),
    ('SGRAF', 'COCO 1K'): (768.6, 695.6),
    ('SGRAF', 'COCO 5K'): (4064.3, 3342.2),
}
PAPER_TRAININGS = {  # minutes
    ('SAF', 'Flickr30K'): (13 * 60 + 35, 10 * 60 + 23),
    ('SAF', 'COCO'): (24 * 60 + 54, 16 * 60 + 45),
    ('SGR', 'Flickr30K'): (17 * 60 + 35, 14 * 60 + 1),
    ('SGR', 'COCO'): (48 * 60 + 52, 41 * 60 + 22),
}

# The seconds of each round, by implementation and pooling.
Rounds = dict[tuple[str, str], np.ndarray]


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    size = dict(type=at_least(1), nargs=2, metavar=('IMAGES', 'CAPTIONS'))
    parser.add_argument('--loop', **size, default=[100, 30], help='what the loop scores')
    parser.add_argument('--ours', **size, default=[10, 1000], help='what ours scores')
    parser.add_argument('--batch', type=at_least(1), default=128, help='pairs of a training step')
    parser.add_argument(
        '--width', type=at_least(1), default=WIDTH, help='width of regions and words'
    )
    parser.add_argument(
        '--repeats', type=at_least(1), default=5, help='rounds of scoring that count'
    )
    parser.add_argument(
        '--step-repeats', type=at_least(1), default=3, help='rounds of training that count'
    )
    add_device(parser)
    return parser.parse_args()


class ModelBenchmark:
    """SAF or SGR at the sizes of a data set, with self-attention and with T-EMDE.

    Args:
        reasoning: 'SAF' or 'SGR'.
        data: a key of ``DATA``.
        args: command line.
    """

    def __init__(self, reasoning: str, data: str, args: argparse.Namespace) -> None:
        self.args, self.data, self.desc = args, DATA[data], f'{reasoning}, {data}'
        self.seconds_of = cpu_seconds_of if args.device == 'cpu' else seconds_of
        num_images, num_captions = map(max, args.loop, args.ours)
        lengths, self.models = caption_lengths(self.data, num_captions), {}
        with torch.device(args.device):
            for pooling in POOLINGS:
                file = f'configs/temde/{reasoning.lower()}_{pooling}_{self.data}.py'
                self.models[pooling] = build_model(file, args.width)
            images = normalize(torch.randn(num_images, REGIONS, args.width), dim=-1)
            captions = [normalize(torch.randn(n, args.width), dim=-1) for n in lengths]
        sizes = {'loop': args.loop, 'ours': args.ours, 'both': map(min, args.loop, args.ours)}
        self.inputs = {name: (images[:i], captions[:t]) for name, (i, t) in sizes.items()}

    @torch.no_grad()
    def test(self, test_sets: list[str]) -> dict[str, Rounds]:
        """Measures the scoring of all pairs, and extrapolates it to test sets.

        Raises:
            AssertionError: if the loop and ours differ in a logit by more than rounding.
        """
        timers = {}
        for pooling, model in self.models.items():
            scorers = {name: cls(model.eval().similarity) for name, cls in IMPLEMENTATIONS.items()}
            logits = (scorer.score(*self.inputs['both']) for scorer in scorers.values())
            torch.testing.assert_close(*(x.cpu() for x in logits), atol=1e-5, rtol=1e-5)
            for name, scorer in scorers.items():
                images, captions = self.inputs[name]
                parts = {
                    'all': (scorer.score, images, captions),
                    'images': (scorer.pool_images, images),
                    'captions': (scorer.pool_captions, captions),
                }
                for part, call in parts.items():
                    timers[name, pooling, part] = partial(self.seconds_of, *call)
        seconds = self._alternate(timers, self.args.repeats, 0, 'test')
        return {
            test_set: {
                (name, pooling): self._extrapolate(seconds, name, pooling, test_set)
                for name in IMPLEMENTATIONS
                for pooling in POOLINGS
            }
            for test_set in test_sets
        }

    def train(self) -> Rounds:
        """Measures training steps, after one of each, which allocates memory."""
        timers, batch = {}, random_batch(self.data, self.args.batch, self.args.device)
        for pooling, model in self.models.items():
            literal = deepcopy(model)
            literal.similarity = LiteralLoop(literal.similarity)
            for name, variant in (('loop', literal), ('ours', model)):
                step = train_step, variant, Adam(variant.train().parameters(), lr=2e-4), batch
                timers[name, pooling] = partial(self.seconds_of, *step)
        return self._alternate(timers, self.args.step_repeats, 1, 'training')

    def _alternate(
        self, timers: dict[tuple, Callable], repeats: int, warm_up: int, what: str
    ) -> dict[tuple, np.ndarray]:
        timers = dict(sorted(timers.items()))  # self-attention and T-EMDE follow each other
        seconds = alternate(timers, repeats, warm_up, f'{self.desc}, {what}')
        return {name: np.array(of_rounds) for name, of_rounds in seconds.items()}

    def _extrapolate(
        self, seconds: dict[tuple, np.ndarray], name: str, pooling: str, test_set: str
    ) -> np.ndarray:
        images, captions = self.inputs[name]
        measured = SetSize(len(images), len(captions), sum(map(len, captions)))
        parts = (seconds[name, pooling, part] for part in ('all', 'images', 'captions'))
        return extrapolate(*parts, measured, TEST_SETS[test_set], IMPLEMENTATIONS[name].shard)


def new_table(title: str, paper_unit: str) -> Table:
    """Makes an empty table; its times are those of self-attention and of T-EMDE."""
    headings = f'model|data|loop, s|saved, %|ours, s|saved, %|paper, {paper_unit}|saved, %'
    return make_table(title, *headings.split('|'), num_text_columns=2)


def add_row(
    table: Table, names: tuple[str, str], rounds: Rounds, paper: tuple[float, float], form: str
) -> None:
    """Adds the times of both poolings and what T-EMDE saves: with the loop, ours, in the paper."""
    cells = []
    for name in IMPLEMENTATIONS:
        attention, temde = (rounds[name, pooling] for pooling in POOLINGS)
        low, saved, high = np.percentile(100 * (1 - temde / attention), [25, 50, 75])
        cells.append(f'{np.median(attention):{form}} / {np.median(temde):{form}}')
        cells.append(f'{saved:.0f} ({low:.0f} to {high:.0f})')
    attention, temde = paper
    table.add_row(*names, *cells, f'{attention} / {temde}', f'{100 * (1 - temde / attention):.0f}')


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    register_all()
    torch.manual_seed(0)
    device = describe_device(args.device)
    tests = new_table(f'test; {device}', 's')
    trainings = new_table(f'training: a step of {args.batch} pairs; {device}; paper: all', 'min')
    seconds = {}
    for reasoning, data in product(('SAF', 'SGR'), DATA):
        benchmark = ModelBenchmark(reasoning, data, args)
        test_sets = [name for name in TEST_SETS if name.startswith(data)]
        for test_set, rounds in benchmark.test(test_sets).items():
            seconds[reasoning, test_set] = rounds
        key = reasoning, data
        add_row(trainings, key, benchmark.train(), PAPER_TRAININGS[key], '.2f')
    for test_set in TEST_SETS:
        saf, sgr = seconds['SAF', test_set], seconds['SGR', test_set]
        seconds['SGRAF', test_set] = {variant: saf[variant] + sgr[variant] for variant in saf}
    for key, paper in PAPER_TESTS.items():
        add_row(tests, key, seconds[key], paper, ',.0f')
    console = Console(width=120)
    console.print(tests)
    console.print(trainings)


if __name__ == '__main__':
    run_or_explain(main)
