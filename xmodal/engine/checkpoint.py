"""Checkpoints that load with ``weights_only=True``.

MMEngine keeps its message hub's ``HistoryBuffer`` objects in a checkpoint, and torch rightly
refuses to unpickle them from a file that may be somebody else's. Here they become tensors.
"""

import numpy as np
import torch
from mmengine.logging import HistoryBuffer

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
