"""What all tools import, in less time."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Iterator[None]:
    """Imports without a search for garbage among all that they bring: not now, and not at exit.

    Python would search the half million objects of PyTorch and its kin a dozen times, for a third
    of the seconds that a tool takes to begin and to end.
    """
    if 'torch' in sys.modules:  # what a caller of the tool has may become garbage
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
