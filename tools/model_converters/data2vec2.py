"""Converts weights of data2vec 2.0 for the encoders of EMKUM.

    python tools/model_converters/data2vec2.py base_imagenet.pt data/data2vec2/image.pth
    python tools/model_converters/data2vec2.py nlp_base.pt data/data2vec2/text

Then use `image_encoder=dict(type='ViTImageEncoder', post_norm=True, depth=…, pretrained=FILE)`, or
`text_encoder=dict(type='BertTextEncoder', config=FOLDER, num_layers=…, pretrained=FOLDER)`. The
modality is detected from the file. Blocks are numbered consecutively: the image model has two
blocks, its "prenet", in the encoder of the modality and ten after it. `depth` and `num_layers`
count all of them; further blocks are ignored when the weights are loaded.
"""

import argparse
from pathlib import Path

from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.imports import quick_imports
from xmodal.files import require_new


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('source', type=Path, help='file of fairseq')
    parser.add_argument('out', type=Path, help='file (images) or folder (texts); must not exist')
    parser.add_argument(
        '--heads', type=at_least(1), default=12, help='number of attention heads: 12 in base models'
    )
    return parser.parse_args()


def main() -> None:
    """Converts a file and reports."""
    args = parse_args()
    require_new('out', args.out)
    # This takes seconds to import; a wrong command line is told at once.
    with quick_imports():
        from xmodal.converters.data2vec2 import convert_file

    print(*convert_file(args.source, args.out, args.heads), sep='\n')


if __name__ == '__main__':
    run_or_explain(main)
