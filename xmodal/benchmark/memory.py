"""Memory of processes and of calls."""

import ctypes
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from xmodal.benchmark.script import default_device

# Of mallopt.
_M_MMAP_THRESHOLD, _M_MMAP_MAX = -3, -4


def proportional_memory(pids: Iterable[int]) -> dict[str, int]:
    """Returns the bytes of processes; a page that n processes share counts 1/n in each.

    Args:
        pids: ids of the processes. Linux only.

    Returns:
        ``Pss``, all memory; ``Pss_Anon``, what is in no file; ``Pss_File``, pages of files, which
        the system may drop.
    """
    total = {'Pss': 0, 'Pss_Anon': 0, 'Pss_File': 0}
    for pid in pids:
        for line in Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines():
            name = line.partition(':')[0]
            if name in total:
                total[name] += int(line.split()[1]) << 10
    return total


def memory_in_use(device: str | None = None) -> float:
    """Returns the MiB that this process holds: of the GPU, or on a CPU, Linux only, of all.

    Args:
        device: 'cuda' or 'cpu'; None for the GPU if there is one.
    """
    if is_cuda(device):
        return torch.cuda.memory_allocated() / 2**20
    ctypes.CDLL(None).malloc_trim(0)  # returns what earlier calls have freed
    return _process_memory('VmRSS') / 2**10


def peak_memory_of(function: Callable, device: str | None = None) -> float:
    """Returns the MiB that a call allocates at its peak. On a CPU Linux only."""
    before = memory_in_use(device)
    if is_cuda(device):
        torch.cuda.reset_peak_memory_stats()
        function()
        return torch.cuda.max_memory_allocated() / 2**20 - before
    Path('/proc/self/clear_refs').write_text('5')  # resets the peak
    function()
    return _process_memory('VmHWM') / 2**10 - before


def is_cuda(device: str | None) -> bool:
    """Whether what is measured is on a GPU; None for the GPU if there is one."""
    return (device or default_device()) == 'cuda'


def return_memory_at_once() -> None:
    """Makes the C library return freed tensors to Linux at once, which takes time.

    From here on a peak is what lives at one time, without what was freed and kept for reuse.
    """
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_MAX, 2**16)
    libc.mallopt(_M_MMAP_THRESHOLD, 2**16)


def _process_memory(key: str) -> int:
    """Returns an entry of /proc/self/status, in KiB."""
    lines = Path('/proc/self/status').read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f'{key}:'))
