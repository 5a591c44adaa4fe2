"""The mean of several models' scores, SGRAF's way: retrieval by all of them together.

    python tools/test.py configs/temde/saf_temde_f30k.py SAF.pth \\
        --cfg-options test_cfg.save_scores=work_dirs/saf.npz
    python tools/test.py configs/temde/sgr_temde_f30k.py SGR.pth \\
        --cfg-options test_cfg.save_scores=work_dirs/sgr.npz
    python tools/analysis/ensemble.py work_dirs/saf.npz work_dirs/sgr.npz
"""

import argparse
from pathlib import Path

from xmodal.engine.errors import run_or_explain
from xmodal.engine.loops.retrieval import print_metrics
from xmodal.evaluation import average_scores, retrieval_metrics
from xmodal.files import write_json


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('scores', nargs='+', help='files that test_cfg.save_scores wrote')
    parser.add_argument('--folds', type=int, default=1, help="5 for COCO's 1K figures")
    parser.add_argument('--metrics', type=Path, help='JSON file for the metrics; replaced if there')
    return parser.parse_args()


def main() -> None:
    """Averages and evaluates."""
    args = parse_args()
    gallery = average_scores(args.scores).gallery
    metrics = retrieval_metrics(gallery, args.folds)
    print_metrics(metrics, gallery, args.folds)
    if args.metrics:
        write_json(args.metrics, metrics, indent=1)


if __name__ == '__main__':
    run_or_explain(main)
