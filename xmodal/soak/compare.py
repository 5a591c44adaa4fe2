"""Whether a run is to the last bit what another is: its checkpoints, its metrics, its files."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from xmodal.engine.checkpoint import listed
from xmodal.engine.loops.train import VALIDATED
from xmodal.engine.work_dir import checkpoints

# What differs between two equal runs.
_CLOCKS = ('time', 'data_time', 'memory')


class Reference:
    """A run that nothing interrupted, which kept all its checkpoints.

    Args:
        folder: its work dir.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last = checkpoints(folder)[0].name

    def has(self, name: str) -> bool:
        """Whether it has a checkpoint of a name; one saved after a signal it does not have."""
        return (self.folder / name).is_file()

    def compare_checkpoint(self, file: Path) -> list[str]:
        """Where a checkpoint differs from that of the same name.

        The checkpoint of an epoch is saved again after its validation if it is the best one. Only
        that version has the metrics.
        """
        found, expected = _content(file), _content(self.folder / file.name)
        if found.pop('validated') != expected.pop('validated'):
            for content in (found, expected):
                del content['metrics'], content['best']
        return _summary(differences(found, expected))

    def compare_end(self, folder: Path) -> list[str]:
        """What of the metrics and of the JSON files of a finished run differs."""
        found, expected = (
            {path.name: path.read_text() for path in sorted(run.glob('*.json'))}
            | {'metrics': _logged(run)}
            for run in (folder, self.folder)
        )
        return _summary(differences(found, expected))


def differences(found: object, expected: object, place: str = '') -> Iterator[str]:
    """The places, as ``optimizer.state.3.exp_avg``, where two values are not the same bits."""
    if type(found) is not type(expected):
        yield f'{place} is a {type(found).__name__}, expected a {type(expected).__name__}'
    elif isinstance(found, Tensor):
        if _bits(found) != _bits(expected):
            yield place
    elif isinstance(found, dict):
        for key in dict.fromkeys([*expected, *found]):
            inner = f'{place}.{key}'.lstrip('.')
            if key in found and key in expected:
                yield from differences(found[key], expected[key], inner)
            else:
                yield f'{inner} is {"missing" if key in expected else "not in the reference"}'
    elif isinstance(found, list | tuple):
        if len(found) != len(expected):
            yield f'{place} has {len(found)} values, expected {len(expected)}'
        for index, pair in enumerate(zip(found, expected, strict=False)):
            yield from differences(*pair, f'{place}.{index}')
    elif repr(found) != repr(expected):  # NaN is equal to itself here, and 0.0 not to -0.0
        yield f'{place} is {found!r}, expected {expected!r}'


def _summary(places: Iterable[str]) -> list[str]:
    """A line for the weights, one for the optimizer, and so on."""
    parts: dict[str, list[str]] = {}
    for place in places:
        parts.setdefault(place.split('.')[0], []).append(place)
    return [f'{part}: {len(found)} differ: {listed(found)}' for part, found in parts.items()]


def _bits(tensor: Tensor) -> tuple[str, tuple[int, ...], bytes]:
    values = tensor.detach().contiguous().reshape(-1)
    return str(tensor.dtype), tuple(tensor.shape), values.view(torch.uint8).numpy().tobytes()


def _content(file: Path) -> dict:
    """What makes a run go on, as far as the file has it: that of the best metrics has less."""
    checkpoint = torch.load(file, map_location='cpu', weights_only=True)
    hub, meta = checkpoint['message_hub'], checkpoint['meta']
    return {
        'weights': checkpoint['state_dict'],
        'optimizer': checkpoint.get('optimizer'),
        'schedules': checkpoint.get('param_schedulers'),
        'metrics': _without_clocks(hub['log_scalars']),
        'best': {
            name: value
            for name, value in hub['runtime_info'].items()
            if name.startswith('best_score')
        },
        'validated': hub['runtime_info'].get(VALIDATED),
        'position': {name: meta[name] for name in ('epoch', 'iter', 'seed')},
    }


def _logged(folder: Path) -> dict[str, dict]:
    """The values in the logs of a run, the last ones where a step was repeated."""
    records = {}
    for file in sorted(folder.glob('*/vis_data/scalars.json')):
        for line in file.read_text().splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:  # the process was killed while it wrote
                continue
            kind = 'train' if 'lr' in record else 'val'
            records[f'{kind} {record["step"]}'] = _without_clocks(record)
    return records


def _without_clocks(values: dict) -> dict:
    return {name: value for name, value in values.items() if name.split('/')[-1] not in _CLOCKS}
