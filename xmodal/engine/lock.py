"""The lock of a work dir: one training at a time."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TextIO

from xmodal.engine.processes import is_alive

LOCK = 'train.lock'
# Where a launcher puts the rank of a process.
_RANK = dict(pytorch='RANK', slurm='SLURM_PROCID', mpi='OMPI_COMM_WORLD_RANK')


@contextmanager
def work_dir_lock(folder: str | Path, launcher: str = 'none') -> Iterator[None]:
    """Keeps other trainings out of a folder as long as this process lives; creates the folder.

    Of several processes of one training, the first holds the lock. It deletes what a training that
    was killed there had not finished writing.

    Raises:
        RuntimeError: when another process trains in it; the message names that process.
    """
    if int(os.environ.get(_RANK.get(launcher, ''), 0)):
        yield
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    with open(Path(folder, LOCK), 'a+') as file:
        try:
            _lock(file)
        except (BlockingIOError, PermissionError):
            file.seek(0)
            raise RuntimeError(
                f'{folder}: another training runs in it ({file.read() or "just started"}): wait '
                'for its end, or give another --work-dir'
            ) from None
        except OSError as error:  # of a file system without locks
            print(
                f'warning: {folder} cannot be locked ({error}): start no second training in it',
                file=sys.stderr,
            )
        # Workers that load data, and may outlive this process by seconds, must not hold the lock.
        if hasattr(os, 'register_at_fork'):
            os.register_at_fork(after_in_child=file.close)
        file.truncate(0)
        now = datetime.now().astimezone().isoformat(' ', 'seconds')
        file.write(f'process {os.getpid()} on {socket.gethostname()} since {now}')
        file.flush()
        _remove_unfinished(Path(folder))
        yield


def _lock(file: TextIO) -> None:
    """Locks a file until it is closed, or its process ends, however.

    The package filelock would empty it, and leave the lock to forked workers before its version 4.

    Raises:
        BlockingIOError, PermissionError: if another process has the lock.
    """
    if sys.platform == 'win32':
        import msvcrt

        file.seek(1 << 30)  # no other process could read what is locked
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_unfinished(folder: Path) -> None:
    """Deletes what :func:`xmodal.files.atomic_write` left in a folder when its process was killed.

    What a living process of this machine may be writing stays, and so does that of other machines.
    A file with the number of this process, which has not written yet, is of an earlier one.
    """
    for path in folder.glob(f'.*.{socket.gethostname()}.*.unfinished'):
        writer = path.name.split('.')[-2]
        if writer.isdecimal() and (int(writer) == os.getpid() or not is_alive(int(writer))):
            path.unlink(missing_ok=True)
