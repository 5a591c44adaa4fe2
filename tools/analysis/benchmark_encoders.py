"""Times the encoding of images and of texts against the encoders of timm and transformers.

    python tools/analysis/benchmark_encoders.py
    python tools/analysis/benchmark_encoders.py --device cuda --dtype bfloat16 --batch 256

Both sides have the same size, random weights and the same inputs, and compute no gradients. EMKUM
has six blocks and its shared block, and is compared with seven blocks of timm or transformers. The
variants run in alternating rounds; ratios are medians over the rounds.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable
from functools import partial

import timm
import torch
from rich.console import Console
from torch import Tensor
from transformers import BertConfig, BertModel

from xmodal.benchmark import (
    alternate,
    describe_device,
    make_parser,
    make_table,
    median_ratio,
    seconds_of,
    write_placeholder_vocabulary,
)
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.registry import MODELS, register_all

ARCH = 'vit_base_patch16_224'
VOCABULARY_SIZE = 50265
BLOCKS = 6  # of each encoder in EMKUM


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('--batch', type=at_least(1), default=8, help='batch size')
    parser.add_argument('--words', type=at_least(1), default=64, help='length of the longest text')
    parser.add_argument(
        '--repeats', type=at_least(1), default=15, help='rounds that count, after a warm-up'
    )
    parser.add_argument(
        '--device', default='cpu', choices=['cpu', 'cuda'], help='device of the models'
    )
    parser.add_argument(
        '--dtype',
        default='float32',
        choices=['float32', 'bfloat16'],
        help='bfloat16: autocast',
    )
    return parser.parse_args()


def build_emkum() -> torch.nn.Module:
    """Builds EMKUM at the published size, with token types and without its teacher."""
    with tempfile.TemporaryDirectory() as folder:
        preprocessor = dict(
            type='ImageTextPreprocessor',
            mean=[127.5] * 3,
            std=[63.75] * 3,
            max_length=64,
            tokenizer=dict(pretrained=write_placeholder_vocabulary(folder)),
        )
        return MODELS.build(
            dict(
                type='EmkumModel',
                data_preprocessor=preprocessor,
                image_encoder=dict(type='ViTImageEncoder', arch=ARCH, image_size=224, depth=BLOCKS),
                text_encoder=dict(
                    type='BertTextEncoder',
                    config=dict(vocab_size=VOCABULARY_SIZE),
                    num_layers=BLOCKS,
                ),
                shared_block=dict(num_heads=12),
                token_type=dict(type='TokenTypeEmbedding', layer_scale=1e-5),
            )
        )


def make_pairs(args: argparse.Namespace) -> dict[str, dict[str, Callable]]:
    """Returns for each encoder the functions of both sides that encode a batch."""
    register_all()
    emkum = build_emkum()
    vit = timm.create_model(ARCH, num_classes=0, depth=BLOCKS)
    seven = timm.create_model(ARCH, num_classes=0, depth=BLOCKS + 1)
    sizes = dict(vocab_size=VOCABULARY_SIZE)
    bert, bert_seven = (
        BertModel(BertConfig(num_hidden_layers=depth, **sizes), add_pooling_layer=False)
        for depth in (BLOCKS, BLOCKS + 1)
    )
    for module in (emkum, vit, seven, bert, bert_seven):
        module.to(args.device).eval()
    images = torch.randn(args.batch, 3, 224, 224, device=args.device)
    ids = torch.randint(5, VOCABULARY_SIZE, (args.batch, args.words), device=args.device)
    lengths = torch.linspace(args.words // 2, args.words, args.batch, device=args.device)
    mask = torch.arange(args.words, device=args.device) < lengths.round()[:, None]

    def encode_text(model: BertModel) -> Tensor:
        return model(input_ids=ids, attention_mask=mask.long()).last_hidden_state

    return {
        'image encoder': {
            'ours': lambda: emkum.image_encoder(images),
            'theirs': lambda: vit.forward_features(images),
        },
        'text encoder': {
            'ours': lambda: emkum.text_encoder(ids, mask),
            'theirs': lambda: encode_text(bert),
        },
        'EMKUM, image': {
            'ours': lambda: emkum.encode_image(images),
            'theirs': lambda: seven.forward_features(images),
        },
        'EMKUM, text': {
            'ours': lambda: emkum.encode_text(ids, mask),
            'theirs': lambda: encode_text(bert_seven),
        },
    }


def encode(function: Callable, args: argparse.Namespace) -> None:
    """Runs a function without gradients in the number format of the command line."""
    dtype = getattr(torch, args.dtype)
    with torch.no_grad(), torch.autocast(args.device, dtype, enabled=dtype != torch.float32):
        function()


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    table = make_table(
        f'{describe_device(args.device)}, {args.dtype}, batch size {args.batch}: 224 pixels, at '
        f'most {args.words} words',
        *('', 'ours, samples/s', 'theirs, samples/s', 'ours / theirs'),
    )
    for name, functions in make_pairs(args).items():
        timers = {
            side: partial(seconds_of, encode, function, args)
            for side, function in functions.items()
        }
        seconds = alternate(timers, args.repeats, desc=name)
        rates = (args.batch / statistics.median(values) for values in seconds.values())
        ratio = median_ratio(seconds['theirs'], seconds['ours'])
        table.add_row(name, *(f'{rate:.1f}' for rate in rates), f'{ratio:.1%}')
    Console(width=100).print(table)


if __name__ == '__main__':
    run_or_explain(main)
