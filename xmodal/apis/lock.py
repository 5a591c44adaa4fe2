"""A lock of what may be pickled and copied."""

import threading


class Lock:
    """As ``threading.Lock`` in a ``with`` statement; a copy of it is a new lock, and open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple:
        return Lock, ()
