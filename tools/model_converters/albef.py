"""Converts the released weights of ALBEF to a checkpoint of this package.

    python tools/model_converters/albef.py ALBEF_4M.pth albef_4m.pth \\
        --config configs/acerpe/albef_4m.py
    python tools/model_converters/albef.py ALBEF_4M.pth acerpe_init.pth \\
        --config configs/acerpe/pretrain_4m.py --image-blocks 0 1 2 3 4 5
    python tools/model_converters/albef.py nlvr2.pth work_dirs/albef/nlvr2.pth \\
        --config configs/acerpe/nlvr2_albef.py

Then set `load_from = 'albef_4m.pth'` in a config, or run `tools/test.py CONFIG albef_4m.pth`. The
file may be of pre-training, or fine-tuned for retrieval, SNLI-VE, VQA, NLVR2 or RefCOCO+: its keys
tell which. Weights can be under the key 'model' or at the top level (as in the released fine-tuned
files). What ALBEF copies to start a task is copied here, too: a layer for each of the two images of
NLVR2, the decoder of answers. If the file has no momentum teacher, it is copied from the model when
the checkpoint is loaded.
"""

import argparse
from functools import partial
from pathlib import Path

from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.imports import quick_imports
from xmodal.files import require_new


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('source', type=Path, help='file of ALBEF')
    parser.add_argument('out', type=Path, help='file to write; must not exist')
    parser.add_argument(
        '--config', required=True, help='config of the model that the weights are for'
    )
    parser.add_argument(
        '--image-blocks',
        type=at_least(0),
        nargs='+',
        help='indices of the image encoder blocks to take, in order (default: the first ones)',
    )
    return parser.parse_args()


def main() -> None:
    """Converts a file and reports."""
    args = parse_args()
    require_new('out', args.out)
    # These take seconds to import; a wrong command line is told at once.
    with quick_imports():
        from xmodal.converters.albef import convert_file
        from xmodal.converters.converted import convert_for_config

    convert = partial(convert_file, image_blocks=args.image_blocks)
    convert_for_config(convert, args.source, args.out, args.config)


if __name__ == '__main__':
    run_or_explain(main)
