"""Times the cascade of SAF and SGR against public SGRAF, and compares its best with the exact ones.

    OMP_NUM_THREADS=1 python tools/analysis/benchmark_cascade.py --peer SGRAF --json FILE
    python tools/analysis/benchmark_cascade.py --scores EXACT.npz CASCADE.npz

* peer: the public code of SGRAF (`--peer`, a checkout of github.com/Paranioar/SGRAF), or the same
  written literally (`xmodal.benchmark.sgraf_loop`); one shard of 100 x 100 is measured;
* first stage: the narrow copy of `CascadeScorer`, in bfloat16 where a CPU has kernels for it;
* second stage: `score_pairs` of random candidates of some images, as many as `CascadeScorer` finds
  at most in COCO 5K, among captions of its number.

The tokens are random, with the sizes of `benchmark_similarity.py`. What is computed once a caption
is taken off the second stage, whose few images pay for it alone. Ratios are of the seconds for a
pair of an image and a word, the second stage weighted by its share of the pairs; the rounds
alternate.

With `--scores`, two files of `test_cfg.save_scores` of one model, the share of queries whose ten
best are the same is printed, in both directions. Random weights have no ranking to compare.
"""

import argparse
import statistics
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from xmodal.benchmark import (
    alternate,
    describe_device,
    make_parser,
    make_table,
    ratios_by_round,
    seconds_of,
)
from xmodal.benchmark.figures import Figures
from xmodal.benchmark.sgraf_costs import TEST_SETS
from xmodal.benchmark.sgraf_peer import sgraf_peer
from xmodal.benchmark.sgraf_random import SHARD, SimilarityBenchmark
from xmodal.converters.sgraf import rename
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.loops import CascadeScorer
from xmodal.evaluation.scores import read_scores, require_same_test
from xmodal.models.sgraf import narrow, score_all_pairs, score_pairs
from xmodal.registry import register_all
from xmodal.structures import PackedTexts, Tokens

BEST = 10
DIRECTIONS = 'image-to-text', 'text-to-image'
SPEED_BAR, SAME_BAR = '>= 10', '>= 0.999'


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser, count = make_parser(__doc__), dict(type=at_least(1))
    parser.add_argument('--images', **count, default=100, help='number of images')
    parser.add_argument('--captions', **count, default=500, help='of the first stage')
    parser.add_argument('--all-captions', **count, default=25000, help='of the second stage')
    parser.add_argument('--repeats', **count, default=5, help='rounds that count')
    parser.add_argument('--peer', type=Path, help='a checkout of public SGRAF')
    parser.add_argument('--scores', nargs=2, type=Path, help='exact scores and those of a cascade')
    parser.add_argument('--json', type=Path, help='file for the figures, replaced if it exists')
    parser.set_defaults(device='cpu', compile=False)
    return parser.parse_args()


def compare(exact: Path, cascade: Path, figures: Figures) -> None:
    """Prints the share of queries of the same best.

    Raises:
        ValueError: when the files are not of the same test set.
    """
    matrices = read_scores(cascade), read_scores(exact)
    require_same_test(exact, matrices[1], cascade, matrices[0])
    ours, theirs = (torch.from_numpy(matrix.scores) for matrix in matrices)
    for name, found, expected in zip(DIRECTIONS, (ours, ours.T), (theirs, theirs.T), strict=True):
        best = [x.topk(BEST, 1).indices.sort(1).values for x in (found, expected)]
        share = float((best[0] == best[1]).all(1).float().mean())
        print(f'{name}: {share:.2%} of {len(found)} queries have the same top {BEST}')
        figures.add(f'{name}: queries of the same top {BEST}', share, 'x', SAME_BAR)


def time_stages(args: argparse.Namespace, figures: Figures) -> None:
    """Prints the table of both similarities."""
    scorer, coco = CascadeScorer(), TEST_SETS['COCO 5K']
    peer = sgraf_peer(args.peer, partial(rename, 2))
    share = scorer.topk / coco.images + scorer.topk / coco.captions
    table = make_table(
        f'{share:.2%} candidates; {describe_device("cpu")}',
        'reasoning',
        *'peer, µs a word|first stage|second stage|both|speed-up'.split('|'),
    )
    for reasoning in ('SAF', 'SGR'):
        benchmark = SimilarityBenchmark(reasoning, 'self-attention', args, peer)
        images, texts = Tokens(benchmark.images), PackedTexts.from_list(benchmark.captions)
        copy = narrow(benchmark.module, images, texts, scorer.dim)
        rows = torch.randint(len(texts.lengths), (args.all_captions,))
        many, chosen = texts.select(rows), torch.rand(args.images, len(rows)) < share
        nothing = torch.zeros_like(chosen)
        dtype = scorer.options['dtype']
        second = partial(score_pairs, benchmark.module, images, many)
        timers = {
            'peer': partial(benchmark.score, None),
            'first': partial(score_all_pairs, copy, images, texts, dtype=dtype),
            'second': partial(second, chosen),
            'once': partial(second, nothing),
        }
        timers = {name: partial(seconds_of, timer) for name, timer in timers.items()}
        seconds = alternate(timers, args.repeats, warm_up=1, desc=reasoning)
        shard = sum(map(len, benchmark.captions[:SHARD])) * len(benchmark.images[:SHARD])
        peers = [value / shard for value in seconds['peer']]
        firsts = [value / (args.images * int(texts.lengths.sum())) for value in seconds['first']]
        words = args.images * int(many.lengths.sum())
        pairs = zip(seconds['second'], seconds['once'], strict=True)
        seconds_of_candidates = [(value - once) / words for value, once in pairs]
        both = [a + b for a, b in zip(firsts, seconds_of_candidates, strict=True)]
        ratios = ratios_by_round(peers, both)
        columns = [peers, firsts, seconds_of_candidates, both]
        medians = [f'{statistics.median(column) * 1e6:.3f}' for column in columns]
        table.add_row(reasoning, *medians, f'x {statistics.median(ratios):.2f}')
        bar = SPEED_BAR if args.peer else None
        figures.add(f'cascade, {reasoning}: peer / ours', ratios, 'x', bar)
    Console(width=130).print(table)


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    register_all()
    torch.manual_seed(0)
    figures = Figures('cascade', 'cpu')
    if args.scores:
        compare(*args.scores, figures)
    else:
        time_stages(args, figures)
    if args.json:
        figures.write(args.json)


if __name__ == '__main__':
    run_or_explain(main)
