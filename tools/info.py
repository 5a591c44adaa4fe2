"""Prints versions, devices, and what is missing here: packages of the extras, and data."""

import argparse
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from xmodal.engine.errors import run_or_explain
from xmodal.packaged import ROOT, near
from xmodal.version import __version__

PACKAGES = ('torch', 'torchvision', 'timm', 'transformers', 'mmengine', 'mmcv-lite', 'numpy')


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--data', type=Path, default=Path('data'), help='folder of the data (default: data)'
    )
    return parser.parse_args()


def installed(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def versions() -> Iterator[tuple[str, str]]:
    """xmodal, Python, and the packages that results depend on."""
    yield 'xmodal', f'{__version__}, configs and tools in {near(ROOT)}'
    yield 'Python', f'{platform.python_version()}, {sys.executable}'
    for package in PACKAGES:
        yield package, installed(package) or 'not installed'


def devices() -> Iterator[tuple[str, str]]:
    """The GPUs, or else the CPU."""
    import torch  # takes seconds; a wrong command line is told at once

    for index in range(torch.cuda.device_count()):
        memory = torch.cuda.get_device_properties(index).total_memory / 2**30
        yield f'cuda:{index}', f'{torch.cuda.get_device_name(index)}, {memory:.0f} GiB'
    if not torch.cuda.is_available():
        yield 'cpu', f'{torch.get_num_threads()} threads; PyTorch sees no GPU'


def extras() -> Iterator[tuple[str, str]]:
    """The extras of the package, with what is missing of each."""
    missing: dict[str, list[str]] = {}
    if not installed('xmodal'):
        yield 'xmodal', 'not installed, only found in PYTHONPATH: pip install -e .'
        return
    for requirement in requires('xmodal') or ():
        name, _, marker = requirement.partition(';')
        if 'extra ==' not in marker:
            continue
        package = name.split('>')[0].split('[')[0].strip()
        lacking = missing.setdefault(marker.split('extra ==')[1].strip(' "\''), [])
        lacking += [] if installed(package) else [package]
    for extra, packages in missing.items():
        advice = f"missing {', '.join(packages)}: pip install 'xmodal[{extra}]'"
        yield extra, advice if packages else 'installed'


def data(folder: Path) -> Iterator[tuple[str, str]]:
    """The folders of data, and how to get the one that a program makes."""
    if not folder.is_dir():
        yield str(folder), 'missing; docs/data.md says what belongs there'
    elif found := sorted(path.name for path in folder.iterdir() if path.is_dir()):
        yield str(folder), ', '.join(found)
    if not (folder / 'shapes').is_dir():
        shapes = folder / 'shapes'
        yield str(shapes), f'missing; made by `xmodal make-shapes --out {shapes}`'


def main() -> None:
    """Prints one block for each subject."""
    args = parse_args()
    blocks = {
        'versions': versions(),
        'devices': devices(),
        'extras': extras(),
        'data': data(args.data),
    }
    for heading, lines in blocks.items():
        print(f'{heading}:')
        for name, value in lines:
            print(f'  {name:<13} {value}', flush=True)


if __name__ == '__main__':
    run_or_explain(main)
