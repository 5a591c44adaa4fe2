"""Draws rsum over N and K from the finished runs of Table 4 (T-EMDE, Fig. 5).

Usage::

    python tools/ablate.py temde/table4
    python tools/analysis/draw_sizes.py work_dirs/sizes.png
"""

import argparse
from pathlib import Path
from statistics import mean

import numpy as np

from xmodal.ablation import Plan, read_table
from xmodal.engine.errors import run_or_explain
from xmodal.visualization.sketch import draw_sizes

TABLE = Path('configs/temde/ablations/table4.py')


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        'out', type=Path, help='image file to write; an existing file is overwritten'
    )
    parser.add_argument(
        '--preset', help='as for tools/ablate.py (default: the first preset of the table)'
    )
    parser.add_argument('--seeds', type=int, default=3, help='as for tools/ablate.py (default: 3)')
    parser.add_argument(
        '--root', type=Path, default=Path('work_dirs/ablate'), help='as for tools/ablate.py'
    )
    return parser.parse_args()


def read_scores(plan: Plan, metric: str) -> dict[tuple[int, int], float]:
    """Returns the mean of a metric over the finished seeds, by (N, K)."""
    scores = {}
    for row in plan.table.rows:
        runs = [plan.run_of(row, plan.table.columns[0].stage, seed) for seed in range(plan.seeds)]
        values = [metrics[metric] for run in runs if (metrics := run.metrics())]
        if values:
            sketch = runs[0].config.model.similarity.global_pooling.pooling
            scores[sketch.partitions, sketch.centroids] = mean(values)
    return scores


def main() -> None:
    """Draws the figure.

    Raises:
        FileNotFoundError: if no run is finished.
    """
    args = parse_args()
    plan = Plan(read_table(TABLE, args.preset), args.seeds, args.root)
    scores = read_scores(plan, 'rsum')
    if not scores:
        raise FileNotFoundError(
            f'{plan.root} has no finished run of Table 4: run `python tools/ablate.py temde/table4`'
        )
    partitions, centroids = (sorted(set(sizes)) for sizes in zip(*scores, strict=True))
    partitions.reverse()
    cells = np.array([[scores.get((n, k), np.nan) for k in centroids] for n in partitions])
    args.out.parent.mkdir(parents=True, exist_ok=True)
    draw_sizes(cells, partitions, centroids).savefig(args.out, dpi=150)
    print(f'{args.out}: {len(scores)} of {len(plan.table.rows)} sizes')


if __name__ == '__main__':
    run_or_explain(main)
