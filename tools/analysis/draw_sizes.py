"""Draws R@1, R@10 and MRR over N and K from the finished runs of Table 4 (T-EMDE, Fig. 5).

Usage::

    python tools/ablate.py temde/table4
    python tools/analysis/draw_sizes.py work_dirs/sizes.png
"""

import argparse
from pathlib import Path
from statistics import mean

import numpy as np

from xmodal.ablation import Plan, find_table, read_table
from xmodal.ablation.report import figures
from xmodal.ablation.table import Column
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.visualization.sketch import draw_sizes


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        'out', type=Path, help='image file to write; an existing file is overwritten'
    )
    parser.add_argument(
        '--preset', help='as for tools/ablate.py (default: the first preset of the table)'
    )
    parser.add_argument(
        '--seeds', type=at_least(1), default=3, help='as for tools/ablate.py (default: 3)'
    )
    parser.add_argument(
        '--root', type=Path, default=Path('work_dirs/ablate'), help='as for tools/ablate.py'
    )
    return parser.parse_args()


def read_scores(plan: Plan, column: Column) -> dict[tuple[int, int], float]:
    """Returns the mean of a column over the finished seeds, by (N, K)."""
    scores = {}
    for row in plan.table.rows:
        if values := figures(plan, row, column):
            config = plan.run_of(row, column.stage, seed=0).config
            sketch = config.model.similarity.global_pooling.pooling
            scores[sketch.partitions, sketch.centroids] = mean(values)
    return scores


def main() -> None:
    """Draws the figure.

    Raises:
        FileNotFoundError: if no run is finished.
    """
    args = parse_args()
    plan = Plan(read_table(find_table('temde/table4'), args.preset), args.seeds, args.root)
    scores = {column.heading: read_scores(plan, column) for column in plan.table.columns}
    sizes = {size for of_column in scores.values() for size in of_column}
    if not sizes:
        raise FileNotFoundError(
            f'{plan.root} has no finished run of Table 4: run `xmodal ablate temde/table4`'
        )
    partitions, centroids = (sorted(set(numbers)) for numbers in zip(*sizes, strict=True))
    partitions.reverse()
    panels = {
        heading: np.array([[of_size.get((n, k), np.nan) for k in centroids] for n in partitions])
        for heading, of_size in scores.items()
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    draw_sizes(panels, partitions, centroids).savefig(args.out, dpi=150)
    print(f'{args.out}: {", ".join(panels)} of {len(sizes)} of {len(plan.table.rows)} sizes')


if __name__ == '__main__':
    run_or_explain(main)
