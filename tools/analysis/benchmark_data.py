"""Times the data loading of a config, beside training steps, or beside other pipelines.

    python tools/analysis/benchmark_data.py configs/acerpe/pretrain_shapes.py --train-steps 10
    python tools/analysis/benchmark_data.py configs/acerpe/albef_4m.py --images FOLDER --peer ALBEF

The first command decodes, augments, batches and tokenises on one core. With --train-steps it
alternates with training steps of the model, so that a drift of the machine's speed affects both
alike. The second one takes images of a folder from their files to normalised batches, on one core,
by the config's pipeline, by torchvision, and with --peer by ALBEF's public code.
"""

import argparse
import statistics
from functools import partial
from pathlib import Path

import cv2
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.optim import build_optim_wrapper
from rich.console import Console
from torch.utils.data import DataLoader, IterableDataset
from tqdm import tqdm

from xmodal.benchmark import (
    WARM_UP,
    alternate,
    default_device,
    make_parser,
    make_table,
    ratios_by_round,
    seconds_of,
    timed,
)
from xmodal.benchmark.figures import Figures
from xmodal.benchmark.image_pipelines import albef, of_config, torchvision_v2
from xmodal.build_functions import find_component
from xmodal.datasets.image_file import IMAGE_SUFFIXES
from xmodal.datasets.samplers import EpochSampler
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.layers import recompute_gelu
from xmodal.errors import ConfigError
from xmodal.registry import DATASETS, FUNCTIONS, MODELS, register_all

BATCH = 32  # images that other pipelines normalise one by one


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('config', help='a pre-training config')
    parser.add_argument(
        '--batches', type=at_least(1), default=20, help='batches that count, after a warm-up'
    )
    parser.add_argument(
        '--train-steps', type=at_least(0), default=0, help='training steps that count; 0: none'
    )
    parser.add_argument('--images', type=Path, help='folder of images, for other pipelines')
    parser.add_argument('--count', type=at_least(1), default=200, help='images of the folder')
    parser.add_argument('--repeats', type=at_least(1), default=7, help='rounds over the images')
    parser.add_argument('--peer', type=Path, help="a checkout of ALBEF's public code")
    parser.add_argument(
        '--json', type=Path, help='file for the figures of --images, replaced if it exists'
    )
    args = parser.parse_args()
    if args.images is None and (args.peer or args.json):
        parser.error('--peer and --json need --images')
    if args.train_steps > args.batches:
        parser.error(f'--train-steps {args.train_steps}, expected at most --batches {args.batches}')
    return args


class Step:
    """Training steps of the model of a config.

    Attributes:
        heads: by name of a variant, its active heads: all heads, and those of the first epochs if
            some heads start later.
    """

    def __init__(self, config: Config) -> None:
        self._model = MODELS.build(config.model).to(default_device()).train()
        recompute_gelu(self._model)  # as the runner does
        self._optim_wrapper = build_optim_wrapper(self._model, config.optim_wrapper)
        self.heads = {'step, all heads': frozenset(self._model.heads)}
        hooks = [hook for hook in config.custom_hooks if hook['type'] == 'DelayedHeadsHook']
        if later := {name for hook in hooks for name in hook['epochs']}:
            first = frozenset(self._model.heads) - later
            self.heads[f'step, first epochs ({", ".join(sorted(first))})'] = first

    def prepare(self, batch: dict) -> dict:
        """The inputs of the model, which belong to data loading."""
        return self._model.data_preprocessor(batch, training=True)

    def __call__(self, inputs: dict, heads: frozenset[str]) -> None:
        self._model.heads.active = heads
        with self._optim_wrapper.optim_context(self._model):
            losses = self._model(**inputs, mode='loss')
        self._optim_wrapper.update_params(self._model.parse_losses(losses)[0])


def time_config(args: argparse.Namespace) -> dict[str, float]:
    """Returns the median seconds of each stage and step, and the ``size`` of a batch.

    Raises:
        ConfigError: when no batch is left after the warm-up.
    """
    config = read_config(args.config, 'train_dataloader')
    loader_config = config.train_dataloader
    dataset = DATASETS.build(loader_config.dataset)
    size = loader_config.get('global_batch_size') or loader_config.batch_size
    sampler = None if isinstance(dataset, IterableDataset) else EpochSampler(dataset, seed=0)
    collate = find_component(loader_config.collate_fn.type, FUNCTIONS)
    loader = DataLoader(dataset, size, sampler=sampler, collate_fn=collate, drop_last=True)
    if len(loader) <= WARM_UP:
        raise ConfigError(
            f'{args.config}: train_dataloader has {len(loader)} whole batches of {size}, expected '
            f'more than the {WARM_UP} of the warm-up: give a config with smaller batches'
        )
    preprocessor = MODELS.build(config.model.data_preprocessor)
    step = Step(config) if args.train_steps else None
    threads = torch.get_num_threads()
    seconds: dict[str, list[float]] = {}
    batches = iter(loader)
    for index in tqdm(range(min(WARM_UP + args.batches, len(loader))), 'batches'):
        torch.set_num_threads(1)
        elapsed, batch = timed(next, batches)
        seconds.setdefault('decode, augment', []).append(elapsed)
        elapsed, _ = timed(preprocessor, batch)
        seconds.setdefault('tokenise, batch, normalise', []).append(elapsed)
        if step and index < WARM_UP + args.train_steps:
            torch.set_num_threads(threads)
            inputs = step.prepare(batch)
            for name, heads in step.heads.items():
                seconds.setdefault(name, []).append(timed(step, inputs, heads)[0])
    medians = {name: statistics.median(values[WARM_UP:]) for name, values in seconds.items()}
    return {**medians, 'size': size}


def print_times(config: str, times: dict[str, float]) -> None:
    """Prints the times of data loading, and their share of a training step."""
    size = times.pop('size')
    steps = {name: times.pop(name) for name in list(times) if name.startswith('step')}
    times['data loading'] = sum(times.values())
    title = f'{config}, batch size {size}'
    table = make_table(title, '', 'ms per batch', 'samples/s per core')
    for name, seconds in times.items():
        table.add_row(name, f'{1e3 * seconds:.1f}', f'{size / seconds:.0f}')
    for name, seconds in steps.items():
        table.add_row(name, f'{1e3 * seconds:.1f}', '')
        table.add_row('  data loading / step', f'{times["data loading"] / seconds:.1%}', '')
    Console(width=100).print(table)


def compare_pipelines(args: argparse.Namespace) -> None:
    """Prints images a second of one core, of each pipeline."""
    found = sorted(f for f in args.images.rglob('*') if f.suffix.lower() in IMAGE_SUFFIXES)
    files = [str(file) for file in found[: args.count]]
    if not files:
        raise ConfigError(f'--images {args.images} has no images')
    config = read_config(args.config, 'train_dataloader')
    size = config.model.backbone.image_encoder.image_size
    pipelines = {'xmodal': of_config(config), 'torchvision v2': torchvision_v2(size)}
    if args.peer:
        pipelines['ALBEF'] = albef(args.peer, files, size)

    def run(name: str) -> None:
        for start in range(0, len(files), BATCH):
            pipelines[name](files[start : start + BATCH])

    torch.set_num_threads(1)
    timers = {name: partial(seconds_of, run, name) for name in pipelines}
    seconds = alternate(timers, args.repeats)
    table = make_table(f'{len(files)} images to {size} × {size}, one core', '', 'images/s', 'ratio')
    figures = Figures('data', 'cpu')
    for name, values in seconds.items():
        rates = [len(files) / value for value in values]
        ratios = ratios_by_round(values, seconds['xmodal'])
        table.add_row(name, f'{statistics.median(rates):.0f}', f'{statistics.median(ratios):.2f}')
        figures.add(name, rates, 'images/s')
        if name != 'xmodal':
            figures.add(f"{name}'s time ÷ ours", ratios, 'x', '>= 2')
    Console().print(table)
    if args.json:
        figures.write(args.json)


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    MMLogger.get_instance('benchmark', log_level='ERROR')
    register_all()
    cv2.setNumThreads(0)
    if args.images:
        compare_pipelines(args)
    else:
        print_times(args.config, time_config(args))


if __name__ == '__main__':
    run_or_explain(main)
