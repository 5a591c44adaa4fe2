"""Counts a model's parameters, part by part.

Usage::

    python tools/analysis/get_params.py configs/acerpe/pretrain_4m.py
    python tools/analysis/get_params.py configs/acerpe/pretrain_4m.py --image-size 384
    python tools/analysis/get_params.py configs/temde/saf_temde_f30k.py --vocab-size 8481
"""

import argparse

import torch
from mmengine.config import Config, ConfigDict
from rich.console import Console
from rich.table import Table
from torch import nn

from xmodal.engine.errors import run_or_explain
from xmodal.models.network import CrossModalNetwork
from xmodal.registry import MODELS, register_all


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file')
    parser.add_argument('--image-size', type=int, help="instead of the config's, in pixels")
    parser.add_argument('--vocab-size', type=int, help='words, where a vocabulary file tells them')
    return parser.parse_args()


def count(*modules: nn.Module) -> int:
    """Parameters of several modules."""
    return sum(p.numel() for module in modules for p in module.parameters())


def count_network(config: ConfigDict) -> dict[str, int]:
    """Parameters of an encoder with its projection to the contrastive space, and of the fusion.

    ACE-RPE's 53.3M for the fusion encoder have the position's matrices in them.
    """
    network = CrossModalNetwork(**config)
    return {
        'text encoder': count(network.text_encoder, network.text_projection),
        'image encoder': count(network.image_encoder, network.image_projection),
        'fusion encoder': count(network.fusion, network.position),
    }


def count_matcher(config: ConfigDict) -> dict[str, int]:
    """Parameters of the encoders and the similarity of a matching model."""
    text, image = MODELS.build(config.text_encoder), MODELS.build(config.image_encoder)
    similarity = MODELS.build({**config.similarity, 'embed_dims': image.embed_dims})
    return {
        'text encoder': count(text),
        'image encoder': count(image),
        'similarity': count(similarity),
    }


def main() -> None:
    """Prints the table."""
    args = parse_args()
    config = Config.fromfile(args.config).model
    parts = config.get('network', config)
    if args.image_size:
        parts.image_encoder.image_size = args.image_size
    if args.vocab_size:
        parts.text_encoder.vocab_size = args.vocab_size
    register_all()
    # On the meta device nothing is allocated, and no weights or vocabularies are needed.
    with torch.device('meta'):
        parts = count_network(parts) if 'network' in config else count_matcher(parts)
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
