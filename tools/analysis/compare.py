"""Compares two models as they are, query by query, by the results of their tests.

Usage::

    python tools/test.py CONFIG ONE.pth --metrics one.json
    python tools/test.py CONFIG OTHER.pth --metrics other.json
    python tools/analysis/compare.py other.json one.json
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table

from xmodal.ablation.paired import paired_difference
from xmodal.ablation.printing import wide_console
from xmodal.ablation.verdict import MARGIN, judge
from xmodal.engine.command_line import ShowDefaults, not_negative
from xmodal.engine.errors import run_or_explain
from xmodal.errors import ConfigError, no_key
from xmodal.evaluation.queries import DETAILS, Queries, figure, queries_file, read_queries

HEADINGS = ('', 'model', 'reference', 'difference', '95 % interval', 'verdict')


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('metrics', type=Path, help='FILE.json of tools/test.py --metrics')
    parser.add_argument('reference', type=Path, help='that of the model to compare with')
    parser.add_argument('--column', nargs='+', help='names of metrics (default: all)')
    parser.add_argument(
        '--margin',
        type=not_negative,
        default=MARGIN,
        help='points within which models are equivalent',
    )
    return parser.parse_args()


def lines(
    model: Queries, reference: Queries, metrics: Sequence[str], margin: float
) -> Iterator[list[str]]:
    """The line of each metric, under ``HEADINGS``.

    Raises:
        ValueError: when the queries of the two differ.
    """
    for metric in metrics:
        difference = paired_difference([model], [reference], [metric])._replace(of_given=True)
        verdict = judge(difference, margin)
        figures = (f'{figure(queries, metric):.2f}' for queries in (model, reference))
        yield [metric, *figures, f'{difference.mean:+.2f}', verdict.interval, str(verdict)]


def main() -> None:
    """Compares."""
    args = parse_args()
    model, reference = (read_queries(queries_file(f)) for f in (args.metrics, args.reference))
    known = list(dict.fromkeys(name for results in model.values() for name in results.columns))
    known = [name for name in known if name not in DETAILS]
    for name in args.column or ():
        if name not in known:
            raise ConfigError(f'--column: {args.metrics} {no_key(name, known)}')
    table = Table(title=f'{args.metrics} against {args.reference}, query by query, in points')
    for index, heading in enumerate(HEADINGS):
        table.add_column(heading, justify='right' if 0 < index < 5 else 'left')
    for line in lines(model, reference, args.column or known, args.margin):
        table.add_row(*line)
    wide_console().print(table)


if __name__ == '__main__':
    run_or_explain(main)
