"""Counts a model's parameters, part by part.

    python tools/analysis/get_params.py configs/acerpe/pretrain_4m.py
    python tools/analysis/get_params.py configs/acerpe/pretrain_4m.py --image-size 384
"""

import argparse

import torch
from mmengine.config import Config
from rich.console import Console
from rich.table import Table
from torch import nn

from xmodal.engine.errors import run_or_explain
from xmodal.models.network import CrossModalNetwork
from xmodal.registry import register_all


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file')
    parser.add_argument('--image-size', type=int, help="instead of the config's, in pixels")
    return parser.parse_args()


def count_parts(network: CrossModalNetwork) -> dict[str, int]:
    """Parameters of an encoder with its projection to the contrastive space, and of the fusion.

    The paper's 53.3M for the fusion encoder have the position's matrices in them.
    """

    def count(*modules: nn.Module) -> int:
        return sum(p.numel() for module in modules for p in module.parameters())

    return {
        'text encoder': count(network.text_encoder, network.text_projection),
        'image encoder': count(network.image_encoder, network.image_projection),
        'fusion encoder': count(network.fusion, network.position),
    }


def main() -> None:
    """Prints the table."""
    args = parse_args()
    config = Config.fromfile(args.config).model.network
    if args.image_size:
        config.image_encoder.image_size = args.image_size
    register_all()
    # On the meta device nothing is allocated, and no weights or vocabularies are needed.
    with torch.device('meta'):
        parts = count_parts(CrossModalNetwork(**config))
    table = Table(title=f'Parameters of {args.config}')
    table.add_column('part')
    table.add_column('millions', justify='right')
    for name, number in parts.items():
        table.add_row(name, f'{number / 1e6:.1f}')
    table.add_section()
    table.add_row('in all', f'{sum(parts.values()) / 1e6:.1f}')
    Console().print(table)


if __name__ == '__main__':
    run_or_explain(main)
