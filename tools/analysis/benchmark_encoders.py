"""Times the encoding of images and of texts against the encoders of timm and transformers.

    python tools/analysis/benchmark_encoders.py
    python tools/analysis/benchmark_encoders.py --device cuda --dtype bfloat16 --batch 256

Both sides have the same size, random weights and the same inputs, and compute no gradients. EMKUM
has six blocks and its shared block, and is compared with seven blocks of timm or transformers.
``Inferencer.encode_texts`` gets texts as they come, and is compared with what one writes by hand:
the texts sorted by length, in batches of 32, through the same model. The variants run in
alternating rounds; ratios are medians over the rounds.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import timm
import torch
from rich.console import Console
from torch import Tensor
from transformers import BertConfig, BertModel

from xmodal.apis import Inferencer
from xmodal.benchmark import (
    alternate,
    describe_device,
    make_parser,
    make_table,
    ratios_by_round,
    seconds_of,
    write_placeholder_vocabulary,
)
from xmodal.benchmark.figures import Figures
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.registry import MODELS, register_all

ARCH = 'vit_base_patch16_224'
VOCABULARY_SIZE = 50265
BLOCKS = 6  # of each encoder in EMKUM
WORDS = 'a red ring left of two blue discs above the small green star'.split()


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('--batch', type=at_least(1), default=8, help='batch size')
    parser.add_argument('--words', type=at_least(1), default=64, help='length of the longest text')
    parser.add_argument(
        '--repeats', type=at_least(1), default=15, help='rounds that count, after a warm-up'
    )
    parser.add_argument(
        '--texts', type=at_least(1), default=1000, help='of the list that comes as it is'
    )
    parser.add_argument('--json', type=Path, help='file for the figures, replaced if it exists')
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


def make_text_lists(count: int) -> dict[str, Callable]:
    """The functions of both sides that encode texts as they come, on the CPU.

    Raises:
        RuntimeError: when the embeddings of both differ.
    """
    inferencer = Inferencer('acerpe-shapes')
    random = np.random.default_rng(0)
    lengths = random.integers(3, 25, count)
    texts = [' '.join(random.choice(WORDS, length)) for length in lengths]

    def by_hand() -> Tensor:
        order = sorted(range(count), key=lambda index: len(texts[index].split()))
        parts = []
        for start in range(0, count, 32):
            batch = [texts[index] for index in order[start : start + 32]]
            words = inferencer.model.data_preprocessor.tokenize(batch)
            parts.append(inferencer.model.encode_text(*words).embedding)
        return torch.cat(parts)[np.argsort(order)]

    with torch.no_grad():
        difference = (by_hand() - inferencer.encode_texts(texts).embedding).abs().max()
    if difference > 1e-5:
        raise RuntimeError(f'embeddings of both sides differ by {difference:.1e}')
    return {'ours': lambda: inferencer.encode_texts(texts), 'theirs': by_hand}


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
    figures = Figures('encoders', args.device)
    pairs = {name: (args.batch, functions) for name, functions in make_pairs(args).items()}
    if args.device == 'cpu':
        pairs['encode_texts'] = args.texts, make_text_lists(args.texts)
    for name, (count, functions) in pairs.items():
        timers = {
            side: partial(seconds_of, encode, function, args)
            for side, function in functions.items()
        }
        seconds = alternate(timers, args.repeats, desc=name)
        rates = (count / statistics.median(values) for values in seconds.values())
        ratios = ratios_by_round(seconds['theirs'], seconds['ours'])
        table.add_row(name, *(f'{r:.1f}' for r in rates), f'{statistics.median(ratios):.1%}')
        bar = '>= 1' if name == 'encode_texts' else None
        figures.add(f"{name}: the other's time ÷ ours", ratios, 'x', bar)
    Console(width=100).print(table)
    if args.json:
        figures.write(args.json)


if __name__ == '__main__':
    run_or_explain(main)
