"""What ends a process from within: a moment at which it changes a file, or a full disk."""

import builtins
import io
import os
import resource
import signal
from collections.abc import Callable

# By these a file is written whole or not at all, and by no others.
_CALLS = ((builtins, 'open'), (io, 'open'), (os, 'replace'), (os, 'unlink'))
_OPEN = io.open
_WRITING = set('wax+')


def die_at_file(word: str, moment: int) -> None:
    """Has this process kill itself while it changes a file.

    The moments are those right before and right after each call that opens the file for writing,
    renames it or deletes it.

    Args:
        word: what the name of the file contains, also before it is complete.
        moment: which of the moments, from 1.
    """
    left = [moment]

    def pass_moment() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    for module, name in _CALLS:
        setattr(module, name, _watched(getattr(module, name), word, pass_moment))


def _watched(call: Callable, word: str, pass_moment: Callable[[], None]) -> Callable:
    def watched(file, *args, **kwargs):
        if not _is_named(file, word) or (call is _OPEN and not _is_writing(*args, **kwargs)):
            return call(file, *args, **kwargs)
        pass_moment()
        result = call(file, *args, **kwargs)
        pass_moment()
        return result

    return watched


def _is_named(file: object, word: str) -> bool:
    return isinstance(file, str | os.PathLike) and word in os.path.basename(file)


def _is_writing(mode: str = 'r', *_, **__) -> bool:
    return not _WRITING.isdisjoint(mode)


def limit_file_size(size: int, is_deadly: bool) -> None:
    """Lets no file grow beyond a size, as on a disk that gets full.

    Args:
        size: bytes; the part of a write that fits is written.
        is_deadly: whether the process is killed there, or gets an error.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if is_deadly else signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
