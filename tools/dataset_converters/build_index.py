"""Builds the indices of a config's annotation files before a run.

    python tools/dataset_converters/build_index.py configs/acerpe/pretrain_4m.py

Training builds them the first time. For millions of pairs this takes a minute or two and needs no
GPU.
"""

import argparse
import time

from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.errors import ConfigError
from xmodal.registry import DATASETS, register_all


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file')
    return parser.parse_args()


def main() -> None:
    """Opens the datasets of a config."""
    config = read_config(parse_args().config)
    register_all()
    names = [f'{step}_dataloader' for step in ('train', 'val', 'test')]
    if not any(map(config.get, names)):
        raise ConfigError(f'{config.filename} has none of {", ".join(names)}')
    for name in names:
        if not config.get(name):
            continue
        started = time.perf_counter()
        dataset = DATASETS.build(config[name].dataset)
        print(f'{name}: {len(dataset)} samples, {time.perf_counter() - started:.1f} s')


if __name__ == '__main__':
    run_or_explain(main)
