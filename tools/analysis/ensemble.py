"""Retrieval by the mean of the scores of several models, as in SGRAF.

    python tools/test.py configs/temde/saf_temde_f30k.py SAF.pth \\
        --cfg-options test_cfg.save_scores=work_dirs/saf.npz
    python tools/test.py configs/temde/sgr_temde_f30k.py SGR.pth \\
        --cfg-options test_cfg.save_scores=work_dirs/sgr.npz
    python tools/analysis/ensemble.py work_dirs/saf.npz work_dirs/sgr.npz \\
        --config configs/temde/saf_temde_f30k.py
"""

import argparse
from pathlib import Path

from mmengine.evaluator import Evaluator

from xmodal.engine.command_line import refuse_folder
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.queries import join_queries
from xmodal.evaluation import average_scores, evaluate_gallery
from xmodal.evaluation.queries import queries_file, write_queries
from xmodal.files import write_json
from xmodal.registry import register_all


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('scores', nargs='+', help='files written by test_cfg.save_scores')
    parser.add_argument(
        '--config', required=True, help='config of a model; its test_evaluator defines the metrics'
    )
    parser.add_argument(
        '--metrics', type=Path, help='JSON file for the metrics; replaced if it exists'
    )
    args = parser.parse_args()
    refuse_folder(parser, '--metrics', args.metrics)
    return args


def main() -> None:
    """Averages and evaluates."""
    args = parse_args()
    register_all()
    evaluator = Evaluator(read_config(args.config, 'test_evaluator').test_evaluator)
    for metric in evaluator.metrics:
        metric.keeps_queries = True
    scores = average_scores(args.scores)
    metrics = evaluate_gallery(evaluator, scores.gallery, scores.captions.tolist())
    if args.metrics:
        queries = join_queries(('', metric) for metric in evaluator.metrics)
        write_queries(queries_file(args.metrics), queries)
        write_json(args.metrics, metrics, indent=1)


if __name__ == '__main__':
    run_or_explain(main)
