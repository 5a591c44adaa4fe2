"""Memory of a program on a CPU, from one batch to the next."""

import ctypes
import os
import platform

import torch

# Of mallopt, with the values that glibc starts with.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_TRIM_THRESHOLD, _MMAP_MAX = 128 * 1024, 65536


def keep_freed_memory() -> None:
    """Keeps what a batch frees for the next one; by default glibc returns it to Linux.

    Gradients and activations are large tensors, which glibc maps anew each time, and Linux fills
    their pages with zeros one by one. Nothing to do on a GPU, or without glibc.
    Workers of data loaders, which are forked, do without: batches of changing sizes would break up
    their heap, to several times the memory that they need.
    """
    if not torch.cuda.is_available() and platform.libc_ver()[0] == 'glibc':
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, -1)
        os.register_at_fork(after_in_child=_return_freed_memory)


def _return_freed_memory() -> None:
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_MAX, _MMAP_MAX)
    libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD)
