"""How often verdicts on rows that do not differ are false, by simulation from real results.

Usage::

    python tools/analysis/simulate_verdicts.py work_dirs/…/seed_*/retrieval/metrics.queries.npz
    python tools/analysis/simulate_verdicts.py --real-seeds work_dirs/…/metrics.queries.npz

The files are those of one config with several seeds. A simulated table has a reference and a row,
both of that config: "better" and "worse" are false. Their seeds are mixes of the real ones on a
resampled test set or, with --real-seeds, two disjoint sets of the real ones.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from tqdm import trange

from xmodal.ablation.paired import LEVEL, paired_difference, require_same_queries
from xmodal.ablation.simulation import mixed_rows, split_rows
from xmodal.ablation.spending import look_levels
from xmodal.ablation.verdict import MARGIN, Verdict, judge
from xmodal.benchmark import make_table
from xmodal.engine.command_line import at_least, not_negative
from xmodal.engine.errors import run_or_explain
from xmodal.errors import ConfigError
from xmodal.evaluation.queries import Queries, read_queries


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('files', nargs='+', type=Path, help='results query by query, one a seed')
    parser.add_argument('--metrics', nargs='+', default=['mean_recall'], help='of the figure')
    parser.add_argument('--seeds', type=at_least(2), nargs='+', default=[3], help='of each row')
    parser.add_argument(
        '--real-seeds', action='store_true', help='split the seeds at random, instead of mixing'
    )
    parser.add_argument('--tables', type=at_least(1), default=200)
    parser.add_argument(
        '--shift', type=not_negative, default=0.0, help='a true difference, in points'
    )
    parser.add_argument('--margin', type=not_negative, default=MARGIN, help='of "equivalent"')
    parser.add_argument(
        '--until-decided', type=at_least(3), metavar='MAX', help='add seeds one at a time'
    )
    args = parser.parse_args()
    if args.until_decided and args.until_decided <= max(args.seeds):
        parser.error('--until-decided MAX needs --seeds of fewer than MAX')
    return args


def simulated_verdict(
    results: list[Queries], args: argparse.Namespace, seeds: int, random: np.random.Generator
) -> Verdict:
    """The verdict on a row of the same config, at once or with seeds added until it is decided."""
    looks, levels = (seeds,), (LEVEL,)
    if args.until_decided:
        looks = tuple(range(seeds, args.until_decided + 1))
        levels = look_levels(looks)
    rows = split_rows if args.real_seeds else mixed_rows
    row, reference = rows(results, looks[-1], random)
    for look, level in zip(looks, levels, strict=True):
        difference = paired_difference(row[:look], reference[:look], args.metrics)
        difference = difference._replace(mean=difference.mean + args.shift)
        verdict = judge(difference, args.margin, level)
        if verdict.is_decided:
            break
    return verdict


def main() -> None:
    """Simulates and prints how often each verdict was given."""
    args = parse_args()
    if len(args.files) < 2:
        raise ConfigError(
            f'{args.files[0]}: a simulated row that differs needs the results of two seeds or more'
        )
    needed = 2 * (args.until_decided or max(args.seeds))
    if args.real_seeds and len(args.files) < needed:
        raise ConfigError(
            f'--real-seeds needs the files of {needed} seeds for two rows of {needed // 2}, and '
            f'{len(args.files)} were given: give more files, or fewer seeds a row'
        )
    results = [read_queries(file) for file in sorted(args.files)]  # shells differ
    require_same_queries(results, args.metrics)
    random = np.random.default_rng(0)
    words = ('better', 'worse', 'equivalent', 'undecided')
    title = f'{args.tables} tables, true difference {args.shift:g}'
    headings = ('seeds', *words, 'mean seeds used', 'median detectable')
    table = make_table(title, *headings, num_text_columns=0)
    for seeds in args.seeds:
        found = [
            simulated_verdict(results, args, seeds, random)
            for _ in trange(args.tables, desc=f'{seeds} seeds', disable=None)
        ]
        counts = [sum(verdict.word == word for verdict in found) for word in words]
        detectable = np.median([verdict.detectable for verdict in found])
        cells = [f'{100 * count / args.tables:.1f} %' for count in counts]
        used = np.mean([len(verdict.difference.by_seed) for verdict in found])
        table.add_row(str(seeds), *cells, f'{used:.1f}', f'{detectable:.2f}')
    Console().print(table)


if __name__ == '__main__':
    run_or_explain(main)
