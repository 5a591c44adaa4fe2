"""The number format of the equations: at least float32, also under autocast."""

import functools
from collections.abc import Callable

import torch
from torch import Tensor


def full_precision(function: Callable) -> Callable:
    """Runs a function outside autocast, with half-precision tensors widened to float32."""

    def widen(value: object) -> object:
        if isinstance(value, Tensor) and value.dtype in (torch.bfloat16, torch.float16):
            return value.float()
        return value

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        tensor = next(value for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
        with torch.autocast(tensor.device.type, enabled=False):
            return function(
                *map(widen, args), **{key: widen(value) for key, value in kwargs.items()}
            )

    return wrapped
