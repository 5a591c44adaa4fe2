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
    script: Path, arguments: list[str], output: Path, trap: Trap | None = None
) -> BaseProcess:
    """Starts a Python script as the command line does.

    The process is forked from one that has only imported what this one has of xmodal: a fork of
    this one could wait for ever for a lock that a thread of this one holds.

    Args:
        script: run as ``__main__``.
        arguments: of its command line.
        output: file for what it prints.
        trap: called in the process before the script; can be pickled.

    Returns:
        The process. It leads a process group, to which its own workers belong.
    """
    context = get_context('forkserver')
    context.set_forkserver_preload([name for name in sys.modules if name.startswith('xmodal.')])
    process = context.Process(target=_run, args=(script, arguments, output, trap))
    # A signal that comes before the script, or after it, must not end the code around it.
    former = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        process.start()
    finally:
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
    gc.freeze()  # or all that was imported would be searched for garbage
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
