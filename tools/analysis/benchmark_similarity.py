"""Times the similarities of SGRAF and T-EMDE against a literal loop over captions.

    OMP_NUM_THREADS=1 python tools/analysis/benchmark_similarity.py

* literal: a loop over captions in shards of 100 x 100, as in public implementations of SGRAF
  (`xmodal.benchmark.sgraf_loop`); one shard is measured;
* ours: `xmodal.models.sgraf`, with matrix products in float32 and in bfloat16.

Measured are SAF and SGR, with self-attention and with T-EMDE, at the sizes of the paper (36
regions, width 1024, similarity vectors of 256), on random tokens of unit norm; captions have the
lengths of those of COCO. The variants run in alternating rounds; ratios are medians over the
rounds. The float32 logits must agree. The time for COCO 5K (5,000 images, 25,000 captions) is
extrapolated: the costs of an image, of a caption and of a pair of an image and a word are weighted
by their numbers there.

A training step covers all pairs of a batch, the hardest-negative loss and its gradients with
respect to the tokens. The encoders are left out; they are the same for both.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from xmodal.benchmark import (
    add_device,
    alternate,
    describe_device,
    make_parser,
    make_table,
    matmul_rate,
    median_ratio,
    peak_memory_of,
    seconds_of,
)
from xmodal.benchmark.sgraf_costs import DIM, REGIONS, WIDTH, ScoringCost, caption_lengths
from xmodal.benchmark.sgraf_loop import LiteralLoop
from xmodal.benchmark.sgraf_tiled import TiledScoring
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.models.sgraf.products import product
from xmodal.registry import MODELS, register_all
from xmodal.structures import Tokens

SHARD = LiteralLoop.shard
POOLINGS = {
    'self-attention': dict(type='SelfAttentionGlobal', regions=REGIONS),
    'T-EMDE': dict(type='SketchGlobal', pooling=dict(type='TEMDE', partitions=20, centroids=8)),
}
# Implementations and their number formats; None for the literal loop.
DTYPES = {'literal': None, 'ours': torch.float32, 'ours, bf16': torch.bfloat16}


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser, count = make_parser(__doc__), dict(type=at_least(1))
    parser.add_argument('--images', **count, default=100, help='number of images, for ours')
    parser.add_argument('--captions', **count, default=500, help='number of captions, for ours')
    parser.add_argument('--batch', **count, default=128, help='pairs of a training step')
    parser.add_argument('--repeats', **count, default=3, help='rounds of scoring that count')
    parser.add_argument('--step-repeats', type=at_least(0), default=1, help='rounds of training')
    parser.add_argument('--compile', action='store_true', help='compile our implementation')
    add_device(parser)
    return parser.parse_args()


class SimilarityBenchmark:
    """A similarity with random tokens, and the implementations to score and to train it.

    Args:
        reasoning: 'SAF' or 'SGR'.
        pooling: a key of ``POOLINGS``.
        args: command line.
    """

    def __init__(self, reasoning: str, pooling: str, args: argparse.Namespace) -> None:
        self.args, self.reasoning, self.pooling = args, reasoning, pooling
        config = dict(
            type='SGRAFSimilarity',
            embed_dims=WIDTH,
            dim=DIM,
            reasoning=dict(type=reasoning),
            global_pooling=POOLINGS[pooling],
        )
        self.module = MODELS.build(config).to(args.device).eval()
        images = torch.randn(args.images, REGIONS, WIDTH, device=args.device)
        self.images, self.captions = normalize(images, dim=-1), self._captions(args.captions)
        self.literal = LiteralLoop(self.module)

    def _captions(self, count: int) -> list[Tensor]:
        device = self.args.device
        lengths = caption_lengths('coco', count)
        return [normalize(torch.randn(n, WIDTH, device=device), dim=-1) for n in lengths]

    @torch.no_grad()
    def score(self, dtype: torch.dtype | None) -> Tensor:
        """Computes the logits of all pairs, or with the literal loop (None) of the first shard."""
        if dtype is None:
            return self.literal.score(self.images[:SHARD], self.captions[:SHARD])
        return self._ours(dtype).score(self.images, self.captions)

    def _ours(self, dtype: torch.dtype) -> TiledScoring:
        return TiledScoring(self.module, dtype, self.args.compile)

    def cost(self, dtype: torch.dtype | None, seconds: list[float]) -> ScoringCost:
        """Returns the cost of scoring, given the seconds of each round."""
        limit = SHARD if dtype is None else None
        per_image, per_caption = (0.0, 0.0) if dtype is None else self._precomputation(dtype)
        return ScoringCost(
            self.reasoning,
            self.pooling,
            dtype,
            len(self.images[:limit]),
            [len(words) for words in self.captions[:limit]],
            seconds,
            per_image,
            per_caption,
        )

    @torch.no_grad()
    def _precomputation(self, dtype: torch.dtype) -> tuple[float, float]:
        """Returns the seconds of what is computed once per image and per caption, for all."""
        ours = self._ours(dtype)
        return (
            seconds_of(ours.pool_images, self.images),
            seconds_of(ours.pool_captions, self.captions),
        )

    def training_steps(self) -> dict[str, Callable[[], Tensor]]:
        """Returns a training step of each implementation, all with the same tokens."""
        batch, device = self.args.batch, self.args.device
        self.module.train()
        images = normalize(torch.randn(batch, REGIONS, WIDTH, device=device), dim=-1)
        captions = self._captions(batch)
        lengths = torch.tensor([len(words) for words in captions], device=device)
        padded = pad_sequence(captions, batch_first=True)
        mask = torch.arange(padded.shape[1], device=device) < lengths[:, None]
        images.requires_grad_()
        padded.requires_grad_()
        positives = torch.eye(batch, dtype=torch.bool, device=device)
        loss_module = MODELS.build(dict(type='TripletLoss'))

        def step(dtype: torch.dtype | None) -> Tensor:
            if dtype is None:
                logits = self.literal(Tokens(images), Tokens(padded, mask))
            else:
                with torch.autocast(device, dtype, enabled=dtype != torch.float32):
                    needed = partial(loss_module.needed_pairs, positives=positives)
                    logits = self.module(Tokens(images), Tokens(padded, mask), needed)
            loss = loss_module(self.module.to_scores(logits), positives)['loss_triplet']
            loss.backward()
            return loss.detach()

        return {name: partial(step, dtype) for name, dtype in DTYPES.items()}


def measure_scoring(benchmark: SimilarityBenchmark, rates: dict, table: Table) -> None:
    """Adds the three rows of one similarity."""
    logits, memory = {}, {}
    for name, dtype in DTYPES.items():
        memory[name] = peak_memory_of(
            lambda name=name, dtype=dtype: logits.update({name: benchmark.score(dtype)})
        )
    expected = logits['literal'].cpu()
    logits = {name: scores[:SHARD, :SHARD].cpu() for name, scores in logits.items()}
    torch.testing.assert_close(logits['ours'], expected, atol=1e-5, rtol=1e-5)
    timers = {name: partial(seconds_of, benchmark.score, dtype) for name, dtype in DTYPES.items()}
    label = f'scoring, {benchmark.reasoning}, {benchmark.pooling}'
    seconds = alternate(timers, benchmark.args.repeats, warm_up=0, desc=label)
    costs = {name: benchmark.cost(dtype, seconds[name]) for name, dtype in DTYPES.items()}
    for name, cost in costs.items():
        error = float((logits[name] - expected).std() / expected.std())
        table.add_row(
            benchmark.reasoning,
            benchmark.pooling,
            name,
            f'{cost.per_million_pairs:.1f}',
            f'x {cost.speed_up_over(costs["literal"]):.2f}',
            f'{memory[name]:.0f}',
            f'{cost.coco_seconds / 60:.1f}',
            f'{cost.flop_rate / 1e12:.3f}',
            f'{cost.flop_rate / rates[cost.dtype or torch.float32]:.0%}',
            f'{error:.0e}' if cost.dtype else '',
            end_section=name == list(DTYPES)[-1],
        )


def measure_steps(benchmark: SimilarityBenchmark, table: Table) -> None:
    """Adds the three rows of one similarity in training."""
    steps = benchmark.training_steps()
    memory = {name: peak_memory_of(step) for name, step in steps.items()}  # the warm-up, too
    label = f'training, {benchmark.reasoning}, {benchmark.pooling}'
    timers = {name: partial(seconds_of, step) for name, step in steps.items()}
    seconds = alternate(timers, benchmark.args.step_repeats, warm_up=0, desc=label)
    for name, values in seconds.items():
        table.add_row(
            benchmark.reasoning,
            benchmark.pooling,
            name,
            f'{statistics.median(values):.2f}',
            f'x {median_ratio(seconds["literal"], values):.2f}',
            f'{memory[name]:.0f}',
            end_section=name == list(DTYPES)[-1],
        )


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    register_all()
    torch.manual_seed(0)
    size, products = 8192 if args.device == 'cuda' else 1024, (torch.matmul, product)
    rates = {
        dtype: matmul_rate(args.device, dtype, size, repeats=10, products=products)
        for dtype in (torch.float32, torch.bfloat16)
    }
    peak = ', '.join(f'{str(dtype)[6:]} {rate / 1e12:.3f}' for dtype, rate in rates.items())
    names = 'reasoning|global node|implementation|'
    scoring = make_table(
        f'{args.images} images, {args.captions} captions; {describe_device(args.device)}, matrix '
        f'products at most {peak} TFLOP/s',
        *f'{names}s / million pairs|speed-up|MiB|COCO 5K min|TFLOP/s|MFU|error / std'.split('|'),
        num_text_columns=3,
    )
    training = make_table(
        f'a training step of {args.batch} pairs',
        *f'{names}s|speed-up|MiB'.split('|'),
        num_text_columns=3,
    )
    for reasoning in ('SAF', 'SGR'):
        for pooling in POOLINGS:
            benchmark = SimilarityBenchmark(reasoning, pooling, args)
            measure_scoring(benchmark, rates, scoring)
            if args.step_repeats:
                measure_steps(benchmark, training)
    console = Console(width=130)
    console.print(scoring)
    if args.step_repeats:
        console.print(training)


if __name__ == '__main__':
    run_or_explain(main)
