"""One training a work dir."""

import multiprocessing
import os
import signal
import socket
import time

import pytest

from xmodal.engine.lock import work_dir_lock
from xmodal.files import atomic_write

FORK = multiprocessing.get_context('fork')


def test_a_second_training_is_told_of_the_first(tmp_path):
    folder = tmp_path / 'new' / 'run'
    with work_dir_lock(folder):
        first = rf'run: .*\(process {os.getpid()} on {socket.gethostname()} since 20\d\d-\d\d-\d\d '
        for _ in range(2):  # asking changes nothing
            with pytest.raises(RuntimeError, match=first), work_dir_lock(folder):
                pass
        with work_dir_lock(tmp_path / 'another'):
            pass
    with work_dir_lock(folder):
        pass


def test_only_the_first_of_several_processes_holds_the_lock(tmp_path, monkeypatch):
    for launcher, variable in (('pytorch', 'RANK'), ('slurm', 'SLURM_PROCID')):
        with work_dir_lock(tmp_path, launcher):
            monkeypatch.setenv(variable, '0')
            with pytest.raises(RuntimeError), work_dir_lock(tmp_path, launcher):
                pass
            monkeypatch.setenv(variable, '1')
            with work_dir_lock(tmp_path, launcher):
                pass
            with pytest.raises(RuntimeError), work_dir_lock(tmp_path, 'none'):
                pass
        monkeypatch.delenv(variable)


def hold(folder, pids):
    """Holds the lock, and starts a process that outlives this one, as a worker may."""
    with work_dir_lock(folder):
        worker = FORK.Process(target=time.sleep, args=(30,))
        worker.start()
        pids.send(worker.pid)
        time.sleep(30)


def test_a_process_that_is_killed_releases_it_though_its_workers_live_on(tmp_path):
    pids, sender = FORK.Pipe()
    holder = FORK.Process(target=hold, args=(tmp_path, sender))
    holder.start()
    worker = pids.recv()
    try:
        first = f'process {holder.pid} on'
        with pytest.raises(RuntimeError, match=first), work_dir_lock(tmp_path):
            pass
        holder.kill()
        holder.join()
        with work_dir_lock(tmp_path):
            pass
    finally:
        os.kill(worker, signal.SIGKILL)


def write_slowly(folder, name, pipe):
    with atomic_write(folder / name) as path:
        path.write_bytes(b'half')
        pipe.send(path.name)
        time.sleep(30)


def test_what_a_killed_process_left_unfinished_is_deleted_and_what_a_living_one_writes_stays(
    tmp_path,
):
    writers = []
    for name in ('epoch_1.pth', 'last_checkpoint'):
        pipe, sender = FORK.Pipe()
        writers.append(FORK.Process(target=write_slowly, args=(tmp_path, name, sender)))
        writers[-1].start()
        assert pipe.recv().startswith(f'.{name}.')
    killed, living = writers
    try:
        os.kill(killed.pid, signal.SIGKILL)
        killed.join()
        others = [f'.x.{name}.unfinished' for name in (f'other-host.{killed.pid}', 'no-number')]
        # A container begins to count its processes anew: this one's number may be an earlier one's.
        earlier = f'.x.{socket.gethostname()}.{os.getpid()}.unfinished'
        for name in (*others, earlier, 'epoch_2.pth'):
            (tmp_path / name).touch()
        assert len(list(tmp_path.glob(f'.*.{killed.pid}.unfinished'))) == 2
        with work_dir_lock(tmp_path):
            left = {path.name for path in tmp_path.iterdir()} - {'train.lock'}
        written = f'.last_checkpoint.{socket.gethostname()}.{living.pid}.unfinished'
        assert left == {written, *others, 'epoch_2.pth'}
    finally:
        living.kill()
        living.join()
