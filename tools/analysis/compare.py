"""Compares two models, or the seeds of two recipes, query by query, by the results of their tests.

Usage::

    python tools/test.py CONFIG ONE.pth --metrics one.json
    python tools/test.py CONFIG OTHER.pth --metrics other.json
    python tools/analysis/compare.py other.json --reference one.json
    python tools/analysis/compare.py other_seed_*.json --reference one_seed_*.json
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table

from xmodal.ablation.paired import paired_difference
from xmodal.ablation.printing import mean_and_deviation, wide_console
from xmodal.ablation.verdict import MARGIN, judge
from xmodal.benchmark import make_parser
from xmodal.engine.command_line import not_negative
from xmodal.engine.errors import run_or_explain
from xmodal.errors import ConfigError, no_key
from xmodal.evaluation.queries import DETAILS, Queries, figure, queries_file, read_queries

HEADINGS = ('', 'model', 'reference', 'difference', '95 % interval', 'verdict')


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument(
        'metrics', type=Path, nargs='+', help='FILE.json of tools/test.py --metrics, one a seed'
    )
    parser.add_argument(
        '--reference',
        type=Path,
        nargs='+',
        required=True,
        help='those of the model to compare with, as many, in the same order of seeds',
    )
    parser.add_argument('--column', nargs='+', help='names of metrics (default: all)')
    parser.add_argument(
        '--margin',
        type=not_negative,
        default=MARGIN,
        help='points within which models are equivalent',
    )
    return parser.parse_args()


def lines(
    models: Sequence[Queries], references: Sequence[Queries], metrics: Sequence[str], margin: float
) -> Iterator[list[str]]:
    """The line of each metric, under ``HEADINGS``.

    Args:
        models: results of one model, or of the seeds of a recipe.
        references: those of the reference, with the same seeds.
        metrics: names of metrics.
        margin: points within which models are equivalent.

    Raises:
        ValueError: when the queries of two results differ.
    """
    for metric in metrics:
        difference = paired_difference(models, references, [metric])
        verdict = judge(difference._replace(of_given=len(models) == 1), margin)
        figures = (
            mean_and_deviation([figure(seed, metric) for seed in seeds])
            for seeds in (models, references)
        )
        yield [metric, *figures, f'{difference.mean:+.2f}', verdict.interval, str(verdict)]


def read_all(files: Sequence[Path]) -> list[Queries]:
    """The results of each file's queries."""
    return [read_queries(queries_file(file)) for file in files]


def main() -> None:
    """Compares."""
    args = parse_args()
    if len(args.metrics) != len(args.reference):
        raise ConfigError(
            f'{len(args.metrics)} files of the model and {len(args.reference)} of --reference: '
            'give a file of each for every seed, in the same order'
        )
    models, references = read_all(args.metrics), read_all(args.reference)
    known = list(dict.fromkeys(name for kind in models[0].values() for name in kind.columns))
    known = [name for name in known if name not in DETAILS]
    for name in args.column or ():
        if name not in known:
            raise ConfigError(f'--column: {args.metrics[0]} {no_key(name, known)}')
    seeds = f', {len(models)} seeds' if len(models) > 1 else ''
    title = f'{args.metrics[0]} against {args.reference[0]}{seeds}, query by query, in points'
    table = Table(title=title)
    for index, heading in enumerate(HEADINGS):
        table.add_column(heading, justify='right' if 0 < index < 5 else 'left')
    for line in lines(models, references, args.column or known, args.margin):
        table.add_row(*line)
    wide_console().print(table)


if __name__ == '__main__':
    run_or_explain(main)
