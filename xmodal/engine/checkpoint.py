"""Checkpoints that load with ``weights_only=True``, and models that are loaded whole.

MMEngine keeps its message hub's ``HistoryBuffer`` objects in a checkpoint, and torch rightly
refuses to unpickle them from a file that may be somebody else's. Here they become tensors.
"""

from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch import nn

from xmodal.engine.legacy import current_names
from xmodal.files import atomic_write

UNREADABLE = (UnpicklingError, EOFError, RuntimeError)  # of torch.load
_MARK = '__history_buffer__'


def to_plain(value: object) -> object:
    """Replaces history buffers and NumPy values, at any depth, by plain ones."""
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
    """The inverse of :func:`to_plain` for history buffers."""
    if isinstance(value, dict):
        if value.get(_MARK):
            history, count = value['history'].cpu().numpy(), value['count'].cpu().numpy()
            return HistoryBuffer(history, count, value['max_length'])
        return {key: from_plain(item) for key, item in value.items()}
    return value


def latest_checkpoint(work_dir: str | Path) -> Path | None:
    """The checkpoint from which a run in a folder goes on, wherever the folder is now."""
    pointer = Path(work_dir, 'last_checkpoint')
    if pointer.is_file():
        return Path(work_dir, Path(pointer.read_text().strip()).name)
    found = [path for name in ('epoch_*', 'iter_*') for path in Path(work_dir).glob(f'{name}.pth')]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def read_checkpoint(file: str | Path) -> dict:
    """What a file of weights holds, on the CPU.

    Raises:
        FileNotFoundError: when the file is missing.
        ValueError: when it is cut short, another kind of file, or holds more than data.
    """
    if not Path(file).is_file():
        raise FileNotFoundError(f'checkpoint {file} is not there')
    try:
        content = torch.load(file, map_location='cpu', weights_only=True)
    except UNREADABLE as error:
        why = str(error).split('\n')[0] or type(error).__name__
        raise ValueError(
            f'{file} ({Path(file).stat().st_size} bytes) is no checkpoint that torch reads: {why}. '
            'Is it whole? A Git LFS pointer is replaced by `git lfs pull`'
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f'{file} holds a {type(content).__name__}, expected a dict of weights')
    return content


def write_checkpoint(file: Path, content: dict) -> None:
    """Writes a file of weights that is whole or not there; makes its folder."""
    with atomic_write(file) as path:
        torch.save(content, path)


def load_weights(model: nn.Module, file: str | Path) -> None:
    """Loads a model for use, all of it; what a checkpoint has beyond the model is left.

    Raises:
        FileNotFoundError: when the file is missing.
        ValueError: when it can't be read, lacks weights, or has some in another shape; names them.
    """
    content = read_checkpoint(file)
    mend = 'give a checkpoint of this config, or convert it (tools/model_converters)'
    try:
        weights = current_names(content.get('state_dict', content))
        missing = model.load_state_dict(weights, strict=False)[0]
    except RuntimeError as error:
        raise ValueError(f'{file} does not fit the model: {error}\n{mend}') from error
    if missing:
        listed = ', '.join(missing[:4]) + (', …' if len(missing) > 4 else '')
        raise ValueError(
            f"{file} lacks {len(missing)} of the model's {len(model.state_dict())} weights, "
            f'{listed}: {mend}'
        )
