"""Converts released weights of SAF and SGR (SGRAF) to a checkpoint of this package.

    python tools/model_converters/sgraf.py model_best.pth.tar saf_f30k.pth \\
        --config configs/temde/saf_self_attention_f30k.py

Then run `tools/test.py CONFIG saf_f30k.pth`. The ids of words are those of the vocabulary file that
was released with the weights. The config must name this file
(`data_preprocessor.tokenizer.vocabulary`); a newly built vocabulary has another order.
"""

import argparse
from pathlib import Path

from xmodal.engine.errors import run_or_explain
from xmodal.engine.imports import quick_imports
from xmodal.files import require_new


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('source', type=Path, help='file of SGRAF')
    parser.add_argument('out', type=Path, help='file to write; must not exist')
    parser.add_argument(
        '--config', required=True, help='config of the model that the weights are for'
    )
    return parser.parse_args()


def main() -> None:
    """Converts a file and reports."""
    args = parse_args()
    require_new('out', args.out)
    # These take seconds to import; a wrong command line is told at once.
    with quick_imports():
        from xmodal.converters.converted import convert_for_config
        from xmodal.converters.sgraf import convert_file

    convert_for_config(convert_file, args.source, args.out, args.config)


if __name__ == '__main__':
    run_or_explain(main)
