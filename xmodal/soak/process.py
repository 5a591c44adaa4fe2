"""A script in a process of its own, which a signal or a trap may end."""

import gc
import os
import resource
import runpy
import signal
import sys
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

Trap = Callable[[], None]
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def start(
    script: Path, arguments: list[str], output: Path, trap: Trap | None = None, fresh: bool = False
) -> BaseProcess:
    """Starts a Python script as the command line does.

    Args:
        script: run as ``__main__``.
        arguments: of its command line.
        output: file for what it prints.
        trap: called in the process before the script; can be pickled.
        fresh: in an interpreter of its own, which takes seconds to import what it needs. Otherwise
            this process is forked, with all the modules that it has imported, and nothing else is
            shared.

    Returns:
        The process. It leads a process group, to which its own workers belong.
    """
    context = get_context('spawn' if fresh else 'fork')
    process = context.Process(target=_run, args=(script, arguments, output, trap))
    # A signal that comes before the script, or after it, must not end the code around it.
    former = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    gc.freeze()  # or a forked process would search all that was imported for garbage
    try:
        process.start()
    finally:
        gc.unfreeze()
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
    return process


def send(process: BaseProcess, number: int) -> None:
    """Sends a signal to a process and its workers, as a cluster and a terminal do."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:  # it does not lead its group yet, or has ended
        if process.is_alive():
            os.kill(process.pid, number)


def _run(script: Path, arguments: list[str], output: Path, trap: Trap | None) -> None:
    os.setpgid(0, 0)
    # What this process may have been told to ignore, or a test runner handles.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(output, 'wb') as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = (open(number, 'w', 1, closefd=False) for number in (1, 2))
    sys.argv = [str(script), *arguments]
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        if trap:
            trap()
        runpy.run_path(str(script), run_name='__main__')
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    except KeyboardInterrupt:  # as an interpreter ends
        raise SystemExit(130) from None
