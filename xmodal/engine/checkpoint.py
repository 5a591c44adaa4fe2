"""Checkpoints that load with ``weights_only=True``, and models that take weights from them.

MMEngine saves the ``HistoryBuffer`` objects of its message hub in a checkpoint, and PyTorch rightly
refuses to unpickle them from an untrusted file. Here they become tensors.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch import Tensor, nn

from xmodal.checkpoint_file import read_checkpoint
from xmodal.engine.legacy import current_names
from xmodal.errors import ConfigError
from xmodal.lora import require_merged

_MARK = '__history_buffer__'


def to_plain(value: object) -> object:
    """Replaces history buffers and NumPy values, at any depth, by dicts, numbers and tensors.

    Functions are left out: ``OneCycleLR`` has one in its state, which it makes anew.
    """
    if isinstance(value, HistoryBuffer):
        history, count = (torch.from_numpy(np.array(part)) for part in value.data)
        return {_MARK: True, 'history': history, 'count': count, 'max_length': value.max_length}
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items() if not callable(item)}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    return value


def from_plain(value: object) -> object:
    """Restores the history buffers that :func:`to_plain` replaced."""
    if isinstance(value, dict):
        if value.get(_MARK):
            history, count = value['history'].cpu().numpy(), value['count'].cpu().numpy()
            return HistoryBuffer(history, count, value['max_length'])
        return {key: from_plain(item) for key, item in value.items()}
    return value


def load_weights(model: nn.Module, file: str | Path) -> None:
    """Loads all weights of a model; other weights in the checkpoint are ignored.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if it cannot be read, lacks weights, or has some in another shape; names them.
    """
    content = read_checkpoint(file)
    advice = 'give a checkpoint of this config, or convert it (`xmodal --help` lists converters)'
    weights = current_names(content.get('state_dict', content), model.state_dict())
    missing = _load(model, weights, file, advice)
    if missing:
        raise ValueError(
            f"{file} lacks {len(missing)} of the model's {len(model.state_dict())} weights, "
            f'{listed(missing)}: {advice}'
        )
    if absent := _absent_parts(model, weights):
        raise ValueError(
            f'{file} has no weights of {absent[0]}, so it is no {type(model).__name__} that was '
            f'trained: {advice}'
        )


def _absent_parts(model: nn.Module, state_dict: dict[str, Tensor]) -> list[str]:
    """Parts of a model of which a checkpoint has nothing.

    A training may start them from others, as the decoder of answers from the fusion encoder, but
    a test of them would be one of nothing learned. Teachers are left out of checkpoints.
    """
    return [
        name
        for name, part in model.named_children()
        if name != 'teacher'
        and next(part.parameters(), None) is not None
        and not any(key.startswith(f'{name}.') for key in state_dict)
    ]


def load_start_weights(
    model: nn.Module,
    state_dict: dict[str, Tensor],
    file: str | Path,
    ignored: Iterable[str] | None = None,
) -> str:
    """Loads the weights that a run starts from; the file may have others as well.

    A new run (``load_from``) leaves out the queue: its entries have the image identities of the
    other run's data, which may be other images here.

    Args:
        model: what is missing stays as it is.
        state_dict: with the current names; what is ignored is taken out.
        file: where it comes from.
        ignored: for a new run, names of tensors or modules that are not loaded
            (``load_from_ignore``); a momentum teacher's copies of them are not either. None for a
            run that is resumed.

    Returns:
        How many tensors of the model come from the file, and which do not.

    Raises:
        ConfigError: if neither the model nor the file has an ignored name, or the file has weights
            beside matrices of LoRA that the model lacks.
        ValueError: if the file has no weight of the model, or one in another shape; names them.
    """
    _require_matching_weights(model, state_dict, file)
    expected = model.state_dict().keys()
    if ignored is not None:
        state_dict = {key: x for key, x in state_dict.items() if not key.startswith('queue.')}
    followed = getattr(model, 'momentum_modules', dict)()
    for prefix in ignored or ():
        names = [
            name
            for name in (*expected, *state_dict)
            if any(f'{x}.'.startswith(f'{prefix}.') for x in (name, _online_name(name, followed)))
        ]
        if not names:
            raise ConfigError(
                f"load_from_ignore names '{prefix}', and neither the model nor {file} has a tensor "
                'or a module of this name'
            )
        for name in names:
            state_dict.pop(name, None)
    others = [name for name in state_dict if name not in expected]
    require_merged(others, expected, file)
    advice = (
        'start from a checkpoint of the same sizes, or name what shall start anew: '
        'load_from_ignore=[…]'
    )
    missing = _load(model, state_dict, file, advice)
    summary = (
        f"{len(expected) - len(missing)} of the model's {len(expected)} tensors are from {file}"
    )
    if missing:
        summary += f'; {len(missing)} start anew: {listed(missing)}'
    if others:
        summary += f'; {len(others)} of the file are not used: {listed(others)}'
    return summary


def _online_name(name: str, followed: dict[str, str]) -> str:
    """The name of a tensor; of one of a momentum teacher, that of the tensor it follows."""
    for copy, path in followed.items():
        if name.startswith(f'teacher.module.{copy}.'):
            return name.replace(f'teacher.module.{copy}', path, 1)
    return name


def listed(names: Iterable[str], count: int = 4) -> str:
    """The first few of many names."""
    first = list(names)
    return ', '.join(first[:count]) + (', …' if len(first) > count else '')


def _load(model: nn.Module, state_dict: dict[str, Tensor], file: str | Path, advice: str) -> list:
    """Loads what a state dict has, and returns the names that it lacks."""
    try:
        return model.load_state_dict(state_dict, strict=False).missing_keys
    except ValueError as error:  # of the model's own checks
        raise ValueError(f'{file} does not fit the model: {error}') from error
    except RuntimeError as error:
        reasons = listed(map(_shortened, str(error).splitlines()[1:]), 8)
        raise ValueError(f'{file} does not fit the model: {reasons}: {advice}') from error


def _shortened(line: str) -> str:
    """A line of PyTorch about a tensor of another shape, or any other as it is."""
    return re.sub(
        r'\s*size mismatch for (\S+): .*Size\((.*)\) from .*Size\((.*)\)\.',
        r'\1 is \2 there and \3 here',
        line,
    )


def _require_matching_weights(
    model: nn.Module, state_dict: dict[str, Tensor], file: str | Path
) -> None:
    """Refuses a checkpoint without a single weight of the model."""
    expected = [name for name, _ in model.named_parameters()]
    if state_dict.keys().isdisjoint(expected):
        raise ValueError(
            f'{file} has nothing for {type(model).__name__}: its weights are called '
            f"'{next(iter(state_dict), '')}' and the like, expected '{expected[0]}'. "
            "Another project's weights are converted by commands that `xmodal --help` lists"
        )
