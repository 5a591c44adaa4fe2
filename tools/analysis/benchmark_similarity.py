"""Times the similarities of SGRAF and T-EMDE against public SGRAF, or a literal loop.

    OMP_NUM_THREADS=1 python tools/analysis/benchmark_similarity.py --peer SGRAF --json FILE

* peer: the public code of SGRAF (`--peer`, a checkout of github.com/Paranioar/SGRAF) with our
  weights; without it, the same written literally, with T-EMDE, too
  (`xmodal.benchmark.sgraf_loop`). Both loop over captions in shards of 100 x 100; one shard is
  measured;
* ours: `xmodal.models.sgraf`, with matrix products in float32 and in bfloat16, which are float32
  where a CPU has no kernels of bfloat16.

Measured are SAF and SGR, with self-attention and with T-EMDE, at the sizes of the paper (36
regions, width 1024, similarity vectors of 256), on random tokens of unit norm; captions have the
lengths of those of COCO. The variants run in alternating rounds; ratios are medians over the
rounds. The float32 logits must agree to 1e-5. The last column says for how many captions the image
of the greatest score is that of the peer. The time for COCO 5K (5,000 images, 25,000 captions) is
extrapolated: the costs of an image, of a caption and of a pair of an image and a word are weighted
by their numbers there.

A training step covers all pairs of a batch, the hardest-negative loss and its gradients, of which
those of the regions are compared. The encoders are left out; they are the same for both. Each
implementation has a process of its own; ours keeps the memory of a step for the next one, as
tools/train.py does.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from xmodal.benchmark import (
    add_device,
    alternate,
    describe_device,
    make_parser,
    make_table,
    matmul_rate,
    peak_memory_of,
    ratios_by_round,
    seconds_of,
)
from xmodal.benchmark.figures import Figures
from xmodal.benchmark.sgraf_costs import TEST_SETS
from xmodal.benchmark.sgraf_loop import LiteralLoop
from xmodal.benchmark.sgraf_peer import sgraf_peer
from xmodal.benchmark.sgraf_random import (
    DTYPES,
    POOLINGS,
    SHARD,
    SimilarityAgreement,
    SimilarityBenchmark,
    SimilarityStep,
)
from xmodal.benchmark.workers import Worker, call_alone
from xmodal.converters.sgraf import rename
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.products import fastest_dtype
from xmodal.registry import register_all

# The least ratios to public SGRAF.
BARS = {'ours': '>= 2.6', 'ours, bf16': '>= 5'}
STEP_BARS = {'ours': '>= 3', 'ours, bf16': '>= 6'}  # of SAF
COCO_BARS = {'SAF': '<= 4', 'SGR': '<= 8'}  # seconds, on an H200


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser, count = make_parser(__doc__), dict(type=at_least(1))
    parser.add_argument('--images', **count, default=100, help='number of images, for ours')
    parser.add_argument('--captions', **count, default=500, help='number of captions, for ours')
    parser.add_argument('--batch', **count, default=128, help='pairs of a training step')
    parser.add_argument('--repeats', **count, default=3, help='rounds of scoring that count')
    parser.add_argument('--step-repeats', type=at_least(0), default=1, help='rounds of training')
    parser.add_argument('--peer', type=Path, help='a checkout of public SGRAF')
    parser.add_argument('--json', type=Path, help='file for the figures, replaced if it exists')
    parser.add_argument('--compile', action='store_true', help='compile our implementation')
    parser.add_argument(
        '--coco', action='store_true', help='also score all of COCO 5K in bfloat16, for a GPU'
    )
    add_device(parser)
    return parser.parse_args()


def measure_scoring(
    benchmark: SimilarityBenchmark, rates: dict, table: Table, figures: Figures
) -> None:
    """Adds the three rows of one similarity."""
    logits, memory = {}, {}
    for name, dtype in DTYPES.items():
        memory[name] = peak_memory_of(
            lambda name=name, dtype=dtype: logits.update({name: benchmark.score(dtype)}),
            benchmark.args.device,
        )
    expected = logits['peer'].cpu()
    logits = {name: scores[:SHARD, :SHARD].cpu() for name, scores in logits.items()}
    torch.testing.assert_close(logits['ours'], expected, atol=1e-5, rtol=1e-5)
    timers = {name: partial(seconds_of, benchmark.score, dtype) for name, dtype in DTYPES.items()}
    label = f'scoring, {benchmark.reasoning}, {benchmark.pooling}'
    seconds = alternate(timers, benchmark.args.repeats, warm_up=0, desc=label)
    costs = {name: benchmark.cost(dtype, seconds[name]) for name, dtype in DTYPES.items()}
    for name, cost in costs.items():
        error = float((logits[name] - expected).std() / expected.std())
        share = cost.flop_rate / rates[cost.dtype or torch.float32]
        ratios = cost.ratios_to(costs['peer'])
        same = (logits[name].argmax(0) == expected.argmax(0)).float().mean()
        table.add_row(
            benchmark.reasoning,
            benchmark.pooling,
            name,
            f'{cost.per_million_pairs:.1f}',
            f'x {statistics.median(ratios):.2f}',
            f'{memory[name]:.0f}',
            f'{cost.coco_seconds / 60:.1f}',
            f'{cost.flop_rate / 1e12:.3f}',
            f'{share:.0%}',
            f'{error:.0e}' if cost.dtype else '',
            f'{same:.0%}' if cost.dtype else '',
            end_section=name == list(DTYPES)[-1],
        )
        if cost.dtype:
            key, bar = f'{label}, {name}', BARS[name] if benchmark.args.peer else None
            figures.add(f'{key}: peer / ours', ratios, 'x', bar)
            figures.add(f'{key}: share of the rate', share, 'x')
            figures.add(f'{key}: error / deviation', error, 'x')
            figures.add(f'{key}: captions of the same best image', float(same), 'x')
        figures.add(f'{label}, {name}: memory', memory[name], 'MiB')


def measure_coco(benchmark: SimilarityBenchmark, figures: Figures) -> None:
    """Times the scores of all pairs of COCO 5K, encoders left out."""
    size = TEST_SETS['COCO 5K']
    args = argparse.Namespace(**vars(benchmark.args))
    args.images, args.captions = size.images, size.captions
    whole = SimilarityBenchmark(benchmark.reasoning, benchmark.pooling, args, LiteralLoop)
    label = f'COCO 5K, {benchmark.reasoning}, {benchmark.pooling}, bf16'
    timers = {label: partial(seconds_of, whole.score, torch.bfloat16)}
    seconds = alternate(timers, args.repeats, warm_up=1, desc=label)[label]
    figures.add(label, seconds, 's', COCO_BARS[benchmark.reasoning])
    print(f'{label}: {statistics.median(seconds):.2f} s')


def measure_steps(
    benchmark: SimilarityBenchmark,
    build: Callable[[], SimilarityBenchmark],
    table: Table,
    figures: Figures,
) -> None:
    """Adds the three rows of one similarity in training, each in a process of its own."""
    args, label = benchmark.args, f'training, {benchmark.reasoning}, {benchmark.pooling}'
    workers = {name: Worker(SimilarityStep, build, name) for name in DTYPES}
    timers = {name: partial(worker.call, 'seconds') for name, worker in workers.items()}
    seconds = alternate(timers, args.step_repeats, warm_up=1, desc=label)
    for worker in workers.values():
        worker.close()
    for name, values in seconds.items():
        ratios = ratios_by_round(seconds['peer'], values)
        memory = call_alone('memory', SimilarityStep, build, name) * 2**10
        table.add_row(
            benchmark.reasoning,
            benchmark.pooling,
            name,
            f'{statistics.median(values):.2f}',
            f'x {statistics.median(ratios):.2f}',
            f'{memory:.0f}',
            end_section=name == list(DTYPES)[-1],
        )
        if name in STEP_BARS:
            bar = STEP_BARS[name] if args.peer and benchmark.reasoning == 'SAF' else None
            figures.add(f'{label}, {name}: peer / ours', ratios, 'x', bar)
        figures.add(f'{label}, {name}: memory', memory, 'MiB')


def check_gradients(build: Callable[[], SimilarityBenchmark], pooling: str) -> None:
    """Compares the gradients of the regions with the peer's."""
    error = call_alone('error', SimilarityAgreement, build)
    # The batch norm of a sketch has other statistics where it is called caption by caption.
    assert error < 1e-4 or pooling == 'T-EMDE', (
        f'gradients of the regions differ by {error:.0e} of their norm'
    )


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    register_all()
    torch.manual_seed(0)
    size = 8192 if args.device == 'cuda' else 1024
    rates = {}
    for dtype in (torch.float32, torch.bfloat16):
        taken = fastest_dtype(dtype, torch.device(args.device))
        rates[dtype] = matmul_rate(args.device, taken, size, repeats=10)
    peak = ', '.join(f'{str(dtype)[6:]} {rate / 1e12:.3f}' for dtype, rate in rates.items())
    names = 'reasoning|global node|implementation|'
    scoring = make_table(
        f'{args.images} images, {args.captions} captions; {describe_device(args.device)}, matrix '
        f'products at most {peak} TFLOP/s',
        *f'{names}s / million pairs|speed-up|MiB|COCO 5K min|TFLOP/s|MFU'.split('|'),
        'error / std',
        'same best',
        num_text_columns=3,
    )
    training = make_table(
        f'a training step of {args.batch} pairs',
        *f'{names}s|speed-up|MiB'.split('|'),
        num_text_columns=3,
    )
    figures, peer = Figures('similarity', args.device), sgraf_peer(args.peer, partial(rename, 2))
    builds = {
        (reasoning, pooling): partial(SimilarityBenchmark, reasoning, pooling, args, peer)
        for reasoning in ('SAF', 'SGR')
        for pooling in (['self-attention'] if args.peer else POOLINGS)
    }
    if args.step_repeats:  # a difference is found before anything is timed
        for (_, pooling), build in builds.items():
            check_gradients(build, pooling)
    for build in builds.values():
        benchmark = build()
        measure_scoring(benchmark, rates, scoring, figures)
        if args.coco:
            measure_coco(benchmark, figures)
        if args.step_repeats:
            measure_steps(benchmark, build, training, figures)
    console = Console(width=130)
    console.print(scoring)
    if args.step_repeats:
        console.print(training)
    if args.json:
        figures.write(args.json)


if __name__ == '__main__':
    run_or_explain(main)
