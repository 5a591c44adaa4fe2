"""The mean of several models' scores, SGRAF's way: retrieval by all of them together.

    python tools/test.py configs/temde/saf_temde_f30k.py SAF.pth \\
        --cfg-options test_cfg.save_scores=work_dirs/saf.npz
    python tools/test.py configs/temde/sgr_temde_f30k.py SGR.pth \\
        --cfg-options test_cfg.save_scores=work_dirs/sgr.npz
    python tools/analysis/ensemble.py work_dirs/saf.npz work_dirs/sgr.npz \\
        --config configs/temde/saf_temde_f30k.py
"""

import argparse
from pathlib import Path

from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.loops.all_pairs import build_metrics, measure
from xmodal.evaluation import average_scores
from xmodal.files import write_json
from xmodal.registry import register_all


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('scores', nargs='+', help='files that test_cfg.save_scores wrote')
    parser.add_argument(
        '--config', required=True, help='of a model; its test_evaluator says what is measured'
    )
    parser.add_argument('--metrics', type=Path, help='JSON file for the metrics; replaced if there')
    return parser.parse_args()


def main() -> None:
    """Averages and evaluates."""
    args = parse_args()
    register_all()
    metrics = build_metrics(read_config(args.config).test_evaluator)
    metrics = measure(metrics, average_scores(args.scores).gallery)
    if args.metrics:
        write_json(args.metrics, metrics, indent=1)


if __name__ == '__main__':
    run_or_explain(main)
