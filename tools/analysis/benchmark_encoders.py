"""Times the encoding of images and of texts, each alone, against timm's and transformers' encoders.

    python tools/analysis/benchmark_encoders.py
    python tools/analysis/benchmark_encoders.py --device cuda --dtype bfloat16 --batch 256

Both sides have the same size, random weights and the same inputs, without gradients; EMKUM's six
blocks with its shared one stand beside seven of timm's or transformers'. They take turns, so that a
drift of the machine's speed hits both alike; a ratio is the median of the turns' ratios.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import timm
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from tqdm import tqdm
from transformers import BertConfig, BertModel

from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import ShowDefaults
from xmodal.registry import MODELS, register_all

ARCH = 'vit_base_patch16_224'
WORDS_KNOWN = 50265
BLOCKS = 6  # of each encoder in EMKUM
WARM_UP = 2


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('--batch', type=int, default=8, help='images or texts at once')
    parser.add_argument('--words', type=int, default=64, help='length of the longest text')
    parser.add_argument('--repeats', type=int, default=15, help='turns counted, after a warm-up')
    parser.add_argument('--device', default='cpu', choices=['cpu', 'cuda'], help='what measures')
    parser.add_argument(
        '--dtype',
        default='float32',
        choices=['float32', 'bfloat16'],
        help='of weights and activations',
    )
    return parser.parse_args()


def build_emkum() -> torch.nn.Module:
    """EMKUM at the published size, with types and without its teacher."""
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder, 'vocab.txt')
        vocabulary.write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n')
        preprocessor = dict(
            type='ImageTextPreprocessor',
            mean=[127.5] * 3,
            std=[63.75] * 3,
            max_length=64,
            tokenizer=dict(pretrained=str(vocabulary)),
        )
        return MODELS.build(
            dict(
                type='EmkumModel',
                data_preprocessor=preprocessor,
                image_encoder=dict(type='ViTImageEncoder', arch=ARCH, image_size=224, depth=BLOCKS),
                text_encoder=dict(
                    type='BertTextEncoder', config=dict(vocab_size=WORDS_KNOWN), num_layers=BLOCKS
                ),
                shared_block=dict(num_heads=12),
                token_type=dict(type='TokenTypeEmbedding', layer_scale=1e-5),
            )
        )


def make_pairs(args: argparse.Namespace) -> dict[str, tuple[Callable, Callable]]:
    """By name, ours and theirs: functions that encode a batch."""
    register_all()
    emkum = build_emkum()
    vit = timm.create_model(ARCH, num_classes=0, depth=BLOCKS)
    seven = timm.create_model(ARCH, num_classes=0, depth=BLOCKS + 1)
    sizes = dict(vocab_size=WORDS_KNOWN)
    bert, bert_seven = (
        BertModel(BertConfig(num_hidden_layers=depth, **sizes), add_pooling_layer=False)
        for depth in (BLOCKS, BLOCKS + 1)
    )
    for module in (emkum, vit, seven, bert, bert_seven):
        module.to(args.device).eval()
    images = torch.randn(args.batch, 3, 224, 224, device=args.device)
    ids = torch.randint(5, WORDS_KNOWN, (args.batch, args.words), device=args.device)
    lengths = torch.linspace(args.words // 2, args.words, args.batch, device=args.device)
    mask = torch.arange(args.words, device=args.device) < lengths.round()[:, None]

    def read(model: BertModel) -> Tensor:
        return model(input_ids=ids, attention_mask=mask.long()).last_hidden_state

    return {
        'image encoder': (
            lambda: emkum.image_encoder(images),
            lambda: vit.forward_features(images),
        ),
        'text encoder': (lambda: emkum.text_encoder(ids, mask), lambda: read(bert)),
        'EMKUM, image': (
            lambda: emkum.encode_image(images),
            lambda: seven.forward_features(images),
        ),
        'EMKUM, text': (lambda: emkum.encode_text(ids, mask), lambda: read(bert_seven)),
    }


def timed(function: Callable, args: argparse.Namespace) -> float:
    """Seconds of a call."""
    dtype = getattr(torch, args.dtype)
    start = time.perf_counter()
    with torch.no_grad(), torch.autocast(args.device, dtype, enabled=dtype != torch.float32):
        function()
    if args.device == 'cuda':
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    device = torch.cuda.get_device_name() if args.device == 'cuda' else 'CPU'
    table = Table(
        title=f'{device}, {torch.get_num_threads()} thread(s), {args.dtype}, batches of '
        f'{args.batch}: 224 pixels, at most {args.words} words'
    )
    for heading in ('', 'ours /s', 'theirs /s', 'ours, of their speed'):
        table.add_column(heading, justify='right' if heading else 'left')
    pairs = make_pairs(args)
    with tqdm(total=len(pairs) * (WARM_UP + args.repeats), desc='turns') as bar:
        for name, both in pairs.items():
            turns = []
            for turn in range(WARM_UP + args.repeats):
                # Who is first changes too.
                order = (0, 1) if turn % 2 else (1, 0)
                seconds = {side: timed(both[side], args) for side in order}
                turns.append((seconds[0], seconds[1]))
                bar.update()
            ours, theirs = zip(*turns[WARM_UP:], strict=True)
            ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
            rates = (args.batch / statistics.median(side) for side in (ours, theirs))
            table.add_row(name, *(f'{rate:.1f}' for rate in rates), f'{ratio:.1%}')
    Console(width=100).print(table)


if __name__ == '__main__':
    run_or_explain(main)
