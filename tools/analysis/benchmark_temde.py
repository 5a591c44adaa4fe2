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

All variants of a model run in alternating rounds; times are medians. "saved" is the share of the
time that T-EMDE saves: the median over the rounds, with the quartiles.
"""

import argparse
import tempfile
from copy import deepcopy
from functools import partial
from itertools import product

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import normalize
from torch.optim import Adam, Optimizer

from xmodal.benchmark import (
    alternate,
    default_device,
    describe_device,
    make_parser,
    make_table,
    seconds_of,
    write_placeholder_words,
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
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.models.sgraf import ImageTextMatcher
from xmodal.registry import MODELS, register_all
from xmodal.structures import ImageTextBatch, Regions
from xmodal.vocabulary import SPECIAL_WORDS

DATA = {'Flickr30K': 'f30k', 'COCO': 'coco'}  # as in the names of configs
POOLINGS = ('self_attention', 'temde')
IMPLEMENTATIONS = {'loop': LiteralLoop, 'ours': TiledScoring}
WORDS, FEATURES = 8000, 2048  # of the vocabulary, of a region

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
    parser.add_argument('--images', type=int, default=100, help='images that are scored')
    parser.add_argument('--captions', type=int, default=30, help='captions that are scored')
    parser.add_argument('--batch', type=int, default=128, help='pairs of a training step')
    parser.add_argument('--width', type=int, default=WIDTH, help='width of regions and words')
    parser.add_argument('--repeats', type=int, default=9, help='rounds of scoring that count')
    parser.add_argument('--step-repeats', type=int, default=3, help='rounds of training that count')
    parser.add_argument('--device', default=default_device(), help='device of the models')
    return parser.parse_args()


def build_model(file: str, width: int) -> ImageTextMatcher:
    """Builds the model of a config with random weights and a vocabulary of placeholders."""
    config = read_config(file).model
    config.image_encoder.embed_dims = config.text_encoder.embed_dims = width
    with tempfile.TemporaryDirectory() as folder:
        config.data_preprocessor.tokenizer.vocabulary = write_placeholder_words(folder, WORDS)
        return MODELS.build(config)


class ModelBenchmark:
    """SAF or SGR at the sizes of a data set, with self-attention and with T-EMDE.

    Args:
        reasoning: 'SAF' or 'SGR'.
        data: a key of ``DATA``.
        args: command line.
    """

    def __init__(self, reasoning: str, data: str, args: argparse.Namespace) -> None:
        self.args, self.data, self.desc = args, DATA[data], f'{reasoning}, {data}'
        lengths = caption_lengths(self.data, args.captions)
        self.measured = SetSize(args.images, args.captions, sum(lengths))
        self.models = {}
        with torch.device(args.device):
            for pooling in POOLINGS:
                file = f'configs/temde/{reasoning.lower()}_{pooling}_{self.data}.py'
                self.models[pooling] = build_model(file, args.width)
            self.images = normalize(torch.randn(args.images, REGIONS, args.width), dim=-1)
            self.captions = [normalize(torch.randn(n, args.width), dim=-1) for n in lengths]

    @torch.no_grad()
    def test(self, test_sets: list[str]) -> dict[str, Rounds]:
        """Measures the scoring of all pairs, and extrapolates it to test sets.

        Raises:
            AssertionError: if the loop and ours differ in a logit by more than rounding.
        """
        timers = {}
        for pooling, model in self.models.items():
            logits = []
            for name, implementation in IMPLEMENTATIONS.items():
                scorer = implementation(model.eval().similarity)
                logits.append(scorer.score(self.images, self.captions).cpu())
                for part, function, inputs in (
                    ('all', scorer.score, (self.images, self.captions)),
                    ('images', scorer.pool_images, (self.images,)),
                    ('captions', scorer.pool_captions, (self.captions,)),
                ):
                    timers[name, pooling, part] = partial(seconds_of, function, *inputs)
            torch.testing.assert_close(*logits, atol=1e-5, rtol=1e-5)
        timers = dict(sorted(timers.items()))  # those that are compared follow each other
        seconds = alternate(timers, self.args.repeats, warm_up=0, desc=f'{self.desc}, test')
        seconds = {key: np.array(of_rounds) for key, of_rounds in seconds.items()}

        def on(target: SetSize, name: str, pooling: str) -> np.ndarray:
            parts = (seconds[name, pooling, part] for part in ('all', 'images', 'captions'))
            return extrapolate(*parts, self.measured, target, IMPLEMENTATIONS[name].shard)

        variants = list(product(IMPLEMENTATIONS, POOLINGS))
        return {
            test_set: {variant: on(TEST_SETS[test_set], *variant) for variant in variants}
            for test_set in test_sets
        }

    def train(self) -> Rounds:
        """Measures training steps, after one of each, which allocates memory."""
        timers = {}
        batch = random_batch(self.data, self.args.batch, self.args.device)
        for pooling, model in self.models.items():
            literal = deepcopy(model)
            literal.similarity = LiteralLoop(literal.similarity)
            for name, variant in zip(IMPLEMENTATIONS, (literal, model), strict=True):
                optimizer = Adam(variant.train().parameters(), lr=2e-4)
                timers[name, pooling] = partial(seconds_of, train_step, variant, optimizer, batch)
        timers = dict(sorted(timers.items()))
        seconds = alternate(timers, self.args.step_repeats, 1, desc=f'{self.desc}, training')
        return {variant: np.array(of_rounds) for variant, of_rounds in seconds.items()}


def train_step(model: ImageTextMatcher, optimizer: Optimizer, batch: ImageTextBatch) -> None:
    """Takes a training step."""
    optimizer.zero_grad()
    model.loss(batch)['loss_triplet'].backward()
    optimizer.step()


def random_batch(data: str, size: int, device: str) -> ImageTextBatch:
    """Makes a batch of random regions and words."""
    lengths = torch.tensor(caption_lengths(data, size), device=device)
    with torch.device(device):
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        words = torch.randint(len(SPECIAL_WORDS), WORDS, mask.shape).masked_fill(~mask, 0)
        features, ids = torch.randn(size, REGIONS, FEATURES), torch.arange(size)
    regions = Regions(features, torch.ones_like(features[..., 0], dtype=torch.bool))
    return ImageTextBatch(regions, words, mask, image_ids=ids, text_ids=ids, text_image_ids=ids)


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
    tests = new_table(f'test, from {args.images} images, {args.captions} captions; {device}', 's')
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
