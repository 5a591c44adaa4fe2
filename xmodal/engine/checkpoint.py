"""Checkpoints that load with ``weights_only=True``, and models that need all their weights.

MMEngine saves the ``HistoryBuffer`` objects of its message hub in a checkpoint, and PyTorch rightly
refuses to unpickle them from an untrusted file. Here they become tensors.
"""

from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch import Tensor, nn

from xmodal.engine.legacy import current_names
from xmodal.files import atomic_write

UNREADABLE = (UnpicklingError, EOFError, RuntimeError)  # what torch.load raises
_MARK = '__history_buffer__'


def to_plain(value: object) -> object:
    """Replaces history buffers and NumPy values, at any depth, by dicts, numbers and tensors."""
    if isinstance(value, HistoryBuffer):
        history, count = (torch.from_numpy(np.array(part)) for part in value.data)
        return {_MARK: True, 'history': history, 'count': count, 'max_length': value.max_length}
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
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


def latest_checkpoint(work_dir: str | Path) -> Path | None:
    """Returns the checkpoint from which a run resumes; its folder may have been moved."""
    pointer = Path(work_dir, 'last_checkpoint')
    if pointer.is_file():
        return Path(work_dir, Path(pointer.read_text().strip()).name)
    found = [path for name in ('epoch_*', 'iter_*') for path in Path(work_dir).glob(f'{name}.pth')]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def read_checkpoint(file: str | Path) -> dict:
    """Reads a checkpoint to the CPU.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if it is truncated, another kind of file, or holds more than data.
    """
    if not Path(file).is_file():
        raise FileNotFoundError(f'checkpoint {file} does not exist')
    try:
        content = torch.load(file, map_location='cpu', weights_only=True)
    except UNREADABLE as error:
        reason = str(error).split('\n')[0] or type(error).__name__
        raise ValueError(
            f'{file} ({Path(file).stat().st_size} bytes) is no checkpoint that torch reads: '
            f'{reason}. Is it whole? A Git LFS pointer is replaced by `git lfs pull`'
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f'{file} holds a {type(content).__name__}, expected a dict of weights')
    return content


def write_checkpoint(file: Path, content: dict) -> None:
    """Writes a checkpoint, complete or not at all; creates its folder."""
    with atomic_write(file) as path:
        torch.save(content, path)


def load_weights(model: nn.Module, file: str | Path) -> None:
    """Loads all weights of a model; other weights in the checkpoint are ignored.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if it cannot be read, lacks weights, or has some in another shape; names them.
    """
    content = read_checkpoint(file)
    state_dict = current_names(content.get('state_dict', content))
    advice = 'give a checkpoint of this config, or convert it (tools/model_converters)'
    try:
        missing = model.load_state_dict(state_dict, strict=False)[0]
    except RuntimeError as error:
        raise ValueError(f'{file} does not fit the model: {error}\n{advice}') from error
    if missing:
        listed = ', '.join(missing[:4]) + (', …' if len(missing) > 4 else '')
        raise ValueError(
            f"{file} lacks {len(missing)} of the model's {len(model.state_dict())} weights, "
            f'{listed}: {advice}'
        )


def require_matching_weights(
    model: nn.Module, state_dict: dict[str, Tensor], file: str | Path
) -> None:
    """Refuses a checkpoint without a single weight of the model.

    Raises:
        ValueError: names a weight of the checkpoint and a weight of the model.
    """
    expected = [name for name, _ in model.named_parameters()]
    if {name.removeprefix('module.') for name in state_dict}.isdisjoint(expected):
        raise ValueError(
            f'{file} has nothing for {type(model).__name__}: its weights are called '
            f"'{next(iter(state_dict), '')}' and the like, expected '{expected[0]}'. "
            "Another project's weights are converted by tools/model_converters"
        )
