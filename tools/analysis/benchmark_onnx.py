"""Compares a model in PyTorch with its ONNX files: times of the parts, and recall.

Usage::

    python tools/export.py acerpe-shapes --to onnx --out models/onnx --int8
    python tools/analysis/benchmark_onnx.py acerpe-shapes models/onnx
    python tools/analysis/benchmark_onnx.py acerpe-shapes models/onnx --recall

The variants run in alternating rounds on one core; the ratios are medians over the rounds. With
``--recall`` the test set of the model's config is ranked by each variant instead.
"""

import argparse
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from mmengine.logging import MMLogger
from rich.console import Console
from torch import Tensor, nn

from xmodal.apis import get_model
from xmodal.benchmark import alternate, make_parser, make_table, median_ratio, seconds_of
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import build_runner, read_config
from xmodal.errors import ConfigError
from xmodal.export import Part, parts_of
from xmodal.export.onnx import OnnxModel
from xmodal.structures import Encoded, Tokens
from xmodal.zoo import find_entry

VARIANTS = {'ONNX': False, 'ONNX, int8': True}


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('name', help='name of a model of the zoo')
    parser.add_argument('folder', type=Path, help='what tools/export.py --to onnx --int8 wrote')
    parser.add_argument(
        '--batch', type=at_least(1), nargs='+', default=[1, 32], help='images, texts or pairs'
    )
    parser.add_argument('--words', type=at_least(3), default=16, help='length of the texts')
    parser.add_argument('--repeats', type=at_least(1), default=20, help='rounds')
    parser.add_argument('--recall', action='store_true', help='recall instead of times')
    return parser.parse_args()


def inputs_of(part: Part, batch: int, words: int) -> dict[str, Tensor]:
    """Inputs of the size that is asked for, of the kinds of a part's example."""
    inputs = {}
    for name, example in part.example.items():
        shape = [batch, *example.shape[1:]]
        if 1 in part.dynamic[name]:
            shape[1] = words
        if example.is_floating_point():
            inputs[name] = torch.randn(shape)
        else:
            inputs[name] = torch.ones(shape, dtype=example.dtype)
    return inputs


def time_parts(model: nn.Module, args: argparse.Namespace) -> None:
    """Prints the times of the parts."""
    runtimes = {name: OnnxModel(args.folder, int8, threads=1) for name, int8 in VARIANTS.items()}
    table = make_table(
        'One core', 'part', 'batch', 'PyTorch, ms', *(f'{name}, relative' for name in VARIANTS)
    )
    for name, part in parts_of(model).items():
        for batch in args.batch:
            inputs = inputs_of(part, batch, args.words)
            arrays = {key: value.numpy() for key, value in inputs.items()}
            calls: dict[str, Callable] = {'PyTorch': lambda p=part, i=inputs: p.module(**i)}
            for variant, runtime in runtimes.items():
                calls[variant] = lambda r=runtime, n=name, a=arrays: r.run(n, a)
            timers = {key: lambda call=call: seconds_of(call) for key, call in calls.items()}
            times = alternate(timers, args.repeats, desc=f'{name}, {batch}')
            ratios = [f'{median_ratio(times[v], times["PyTorch"]):.2f}' for v in VARIANTS]
            median = 1000 * statistics.median(times['PyTorch'])
            table.add_row(name, str(batch), f'{median:.2f}', *ratios)
    Console().print(table)


def run_by(model: nn.Module, runtime: OnnxModel) -> None:
    """Makes a model compute by ONNX."""
    grid = parts_of(model)['matcher'].module.grid_size

    def encode_image(images: Tensor) -> Encoded:
        tokens, embedding = map(torch.from_numpy, runtime.encode_images(images.numpy()))
        return Encoded(Tokens(tokens, grid_size=grid), embedding)

    def encode_text(input_ids: Tensor, mask: Tensor) -> Encoded:
        arrays = input_ids.numpy(), mask.numpy().astype(np.int64)
        tokens, embedding = map(torch.from_numpy, runtime.encode_texts(*arrays))
        return Encoded(Tokens(tokens, mask), embedding)

    def match_logits(image: Tokens, text: Tokens, pairs: Tensor) -> Tensor:
        images, texts = image.select(pairs[:, 0]), text.select(pairs[:, 1])
        mask = texts.attention_mask.numpy().astype(np.int64)
        arrays = images.embeddings.numpy(), texts.embeddings.numpy(), mask
        return torch.from_numpy(runtime.match(*arrays))

    model.data_preprocessor.normalize = lambda images: images  # the program does it
    model.encode_image, model.encode_text = encode_image, encode_text
    model.match_logits = match_logits


def rank(args: argparse.Namespace, int8: bool | None) -> Mapping[str, float]:
    """The metrics of the test set by PyTorch (None), ONNX, or ONNX with int8."""
    entry = find_entry(args.name)
    if entry is None:
        raise ConfigError(f"{args.name}: --recall needs a name of the zoo, for its config's data")
    config = read_config(str(entry.config_file))
    config.work_dir = f'work_dirs/benchmark_onnx/{args.name}'
    config.experiment_name = f'{args.name} {int8}'
    config.load_from, config.log_level = None, 'WARNING'
    runner = build_runner(config)
    runner.model.load_state_dict(get_model(args.name).state_dict())
    runner.model.eval()
    if int8 is not None:
        run_by(runner.model, OnnxModel(args.folder, int8, threads=1))
    return runner.test()


def compare_recall(args: argparse.Namespace) -> None:
    """Prints the recall of the variants."""
    table = make_table(
        'Recall', 'variant', 'TR@1, ITC', 'IR@1', 'mean', 'TR@1, ITM', 'IR@1', 'mean'
    )
    names = ['i2t/R@1', 't2i/R@1', 'mean_recall']
    for variant, int8 in {'PyTorch': None, **VARIANTS}.items():
        metrics = rank(args, int8)
        values = [metrics[f'first_stage/{name}'] for name in names] + [metrics[n] for n in names]
        table.add_row(variant, *(f'{value:.1f}' for value in values))
    Console().print(table)


@torch.no_grad()
def main() -> None:
    """Prints the table."""
    args = parse_args()
    torch.set_num_threads(1)
    MMLogger.get_instance('xmodal', log_level='WARNING')
    if args.recall:
        compare_recall(args)
    else:
        time_parts(get_model(args.name), args)


if __name__ == '__main__':
    run_or_explain(main)
