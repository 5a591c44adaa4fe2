"""Counts the forward FLOPs of an image-text pair by part, for the models of ALBEF and ACE-RPE.

Usage::

    python tools/analysis/get_flops.py configs/acerpe/retrieval_coco.py

PyTorch's counter: matrix products, attention and convolutions, two operations a multiply-add;
nothing elementwise, so not the search for the shortest paths of ACE-RPE either. The pair is encoded
and fused, both streams in all layers, without heads; the text has as many word pieces as the config
reads. The position is the difference to the same model without one. Nothing is downloaded and no
weights are read.
"""

import argparse

from mmengine.config import ConfigDict
from rich.console import Console

from xmodal.benchmark import make_table
from xmodal.benchmark.flops import count_parts
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.errors import ConfigError
from xmodal.models.albef import AlbefBackbone
from xmodal.registry import register_all

# The caption of ACE-RPE's Table 1, in GFLOPs: the position is the difference.
PAPER = {'without position': 115, 'position': 7, 'total': 122}


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file')
    return parser.parse_args()


def is_of_the_paper(backbone: ConfigDict) -> bool:
    """Whether a config has the sizes of the model whose FLOPs the paper gives."""
    fusion, position = backbone.fusion, backbone.position
    sizes = fusion.get('streams'), fusion.depth, fusion.embed_dims
    return sizes == ('both', 6, 768) and position.type == 'AnchorRelativePosition'


def main() -> None:
    """Prints the table."""
    args = parse_args()
    model = read_config(args.config, 'model').model
    register_all()
    backbone = model.get('backbone', {})
    image_size = backbone.get('image_encoder', {}).get('image_size')
    if image_size is None or 'fusion' not in backbone:
        raise ConfigError(
            f'{args.config}: model.backbone has no fusion encoder over an image of '
            'image_encoder.image_size pixels, which this tool counts: give a config of '
            'configs/acerpe'
        )
    num_words = model.data_preprocessor.max_length
    parts = count_parts(AlbefBackbone(**backbone), image_size, num_words)
    paper = PAPER if is_of_the_paper(backbone) else {}
    print(f'GFLOPs of {args.config}, an image of {image_size} x {image_size}, {num_words} words')
    table = make_table('', 'part', 'GFLOPs', *(['paper, Table 1'] if paper else []))
    for name, flops in parts.items():
        figures = [str(paper.get(name, ''))] if paper else []
        table.add_row(
            name, f'{flops / 1e9:.4g}', *figures, end_section=name in ('fusion encoder', 'position')
        )
    Console().print(table)
    print(f'the position adds {parts["position"] / parts["without position"]:.1%}', end='')
    print(', 6.1 % in the paper' if paper else '')


if __name__ == '__main__':
    run_or_explain(main)
