"""Memory of a training on a CPU, from one step to the next."""

import ctypes
import platform

import torch

# Of mallopt.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Keeps what a step frees for the next one; by default glibc returns it to Linux.

    Gradients and activations are large tensors, which glibc maps anew each time, and Linux fills
    their pages with zeros one by one. Nothing to do for training on a GPU, or without glibc.
    """
    if not torch.cuda.is_available() and platform.libc_ver()[0] == 'glibc':
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, -1)
