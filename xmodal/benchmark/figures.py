"""The figures of a benchmark as a file: values, bars, machine, versions and command."""

import os
import platform
import shlex
import statistics
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import torch

from xmodal.benchmark.memory import is_cuda
from xmodal.files import write_json
from xmodal.version import __version__

_PACKAGES = ('transformers', 'timm', 'numpy', 'mmengine')
_HOLDS = {'>=': lambda value, bar: value >= bar, '<=': lambda value, bar: value <= bar}


class Figures:
    """Collects what a benchmark measures, and writes it with what it depends on.

    Args:
        name: of the benchmark.
        device: that it measures, 'cpu' or 'cuda'; None for the GPU if there is one.
    """

    def __init__(self, name: str, device: str | None = None) -> None:
        self.name, self.device = name, device
        self.figures: list[dict] = []

    def add(
        self, key: str, value: float | Sequence[float], unit: str, bar: str | None = None
    ) -> 'Figures':
        """Adds a figure.

        Args:
            key: what was measured, such as 'step, fp32'.
            value: a number, or one of every round: the median counts, the least and the greatest
                are written beside it.
            unit: such as 's', 'GiB' or 'x'.
            bar: what is to be reached, such as '>= 1.4' or '<= 0.8'; None for a mere figure.

        Returns:
            This object, so that calls can be chained.

        Raises:
            ValueError: for a bar of another form.
        """
        figure: dict = {'key': key, 'unit': unit}
        if isinstance(value, Sequence):
            figure |= {'low': min(value), 'high': max(value), 'rounds': len(value)}
            value = statistics.median(value)
        figure['value'] = value
        if bar is not None:
            sign, _, number = bar.partition(' ')
            if sign not in _HOLDS or not number:
                raise ValueError(f"bar='{bar}' of '{key}', expected a form such as '>= 1.4'")
            figure |= {'bar': bar, 'holds': _HOLDS[sign](value, float(number))}
        self.figures.append(figure)
        return self

    def write(self, path: str | Path) -> None:
        """Writes the figures, the machine, the versions and the command line as JSON."""
        content = {
            'name': self.name,
            'command': shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            'machine': describe_machine(self.device),
            'versions': describe_versions(),
            'figures': self.figures,
        }
        write_json(Path(path), content, indent=2)


def describe_machine(device: str | None) -> dict[str, object]:
    """The processor, its cores, the threads that PyTorch uses, and the GPU or None."""
    return {
        'processor': _processor(),
        'cores': os.cpu_count(),
        'threads': torch.get_num_threads(),
        'gpu': torch.cuda.get_device_name() if is_cuda(device) else None,
    }


def describe_versions() -> dict[str, str]:
    """Versions of this package, of Python and of the libraries that do the arithmetic."""
    own = {'xmodal': __version__, 'python': platform.python_version(), 'torch': torch.__version__}
    return own | {name: version(name) for name in _PACKAGES}


def _processor() -> str:
    """The name of the processor, with its family and model where Linux tells them."""
    try:
        lines = Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    entries = dict(map(str.strip, line.split(':', 1)) for line in lines if ':' in line)
    name = entries.get('model name', platform.machine())
    if 'cpu family' in entries:
        name += f', family {entries["cpu family"]}, model {entries["model"]}'
    return name
