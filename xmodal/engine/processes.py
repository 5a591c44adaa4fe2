"""What ends the processes of a run: the end of the script that started them, and signals."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

SIGNALS = (signal.SIGTERM, signal.SIGINT)  # of a cluster, and of Ctrl-C
LAUNCHER = 'XMODAL_LAUNCHER'  # the process id of tools/dist_train.sh or tools/dist_test.sh


def end_with_launcher() -> None:
    """Sends this process SIGTERM once the script that started it is gone: a training then saves.

    A script that is killed (SIGKILL) cannot take its processes along itself.
    """
    if launcher := os.environ.get(LAUNCHER):
        Thread(target=_end_after, args=(int(launcher),), daemon=True).start()


def _end_after(process: int) -> None:
    while is_alive(process):
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def signals_restored() -> Iterator[None]:
    """Restores the handlers of SIGTERM and SIGINT, however the work within it ends.

    A handler that stays behind would let processes that are forked later ignore the signal.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def is_alive(process: int) -> bool:
    """Whether a process of this machine has this number."""
    if sys.platform == 'win32':  # where the signal 0 would end it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
    return True
