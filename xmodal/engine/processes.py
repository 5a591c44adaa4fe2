"""The processes of a run on several ranks end with the script that started them."""

import os
import signal
import sys
import time
from threading import Thread

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
