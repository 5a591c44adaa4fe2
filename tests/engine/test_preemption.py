"""Runs that get SIGTERM of a cluster, or SIGINT of their user."""

import multiprocessing
import os
import select
import signal
import subprocess
import threading

import pytest
from runs import assert_same_end, call_at, train

from xmodal.engine.hooks import preemption


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]


def send(number):
    """A function that sends a signal to the training process."""
    return lambda runner: os.kill(os.getpid(), number)


def stop_at(config, iteration, function, **changes):
    """Trains until a function, called before an iteration, ends the run; returns the status."""
    config = config.copy()
    config.custom_hooks = [*config.custom_hooks, call_at(iteration, function)]
    before = handlers()
    with pytest.raises(SystemExit) as status:
        train(config, **changes)
    assert handlers() == before
    return status.value.code


def names(folder):
    return sorted(path.name for path in folder.glob('*.pth'))


def test_a_training_that_fails_leaves_no_handler_behind(tiny_config):
    def fail(runner):
        assert handlers() != before
        raise ArithmeticError

    tiny_config.custom_hooks.append(call_at(1, fail))
    before = handlers()
    with pytest.raises(ArithmeticError):
        train(tiny_config)
    assert handlers() == before


@pytest.mark.parametrize(('name', 'status'), [('TERM', 0), ('INT', 130)])
def test_after_a_signal_a_run_saves_ends_and_resumes_to_the_same_end(
    tiny_config, tmp_path, capfd, name, status
):
    if name == 'TERM' and not hasattr(signal, 'sigwaitinfo'):
        pytest.skip('a worker does not know the sender of a signal here')
    train(tiny_config, work_dir=str(tmp_path / 'whole'))

    def preempt(runner):
        workers = multiprocessing.active_children()
        assert workers
        # To all, as clusters and terminals do. A sleep shows whether a worker dies of it.
        pids = ' '.join(str(pid) for pid in [os.getpid(), *(worker.pid for worker in workers)])
        subprocess.run(f'kill -{name} {pids}; sleep 0.2', shell=True, check=True)
        assert all(worker.is_alive() for worker in workers)
        # As torchrun does with the SIGINT that it gets, as all do, from the terminal.
        os.kill(os.getpid(), getattr(signal, f'SIG{name}'))

    cut = dict(work_dir=str(tmp_path / 'cut'))
    preempted = tiny_config.copy()
    preempted.train_dataloader.update(num_workers=1, persistent_workers=True)
    assert stop_at(preempted, 5, preempt, **cut) == status
    path = tmp_path / 'cut/iter_6.pth'
    assert (tmp_path / 'cut/last_checkpoint').read_text() == str(path)
    printed = ''.join(capfd.readouterr())
    assert f'SIG{name}: saved {path}; resume with the same command and --resume' in printed
    assert printed.count('again to end at once') == (name == 'INT')  # and none from a worker
    train(tiny_config, resume=True, **cut)
    assert_same_end(tmp_path / 'whole/epoch_2.pth', tmp_path / 'cut/epoch_2.pth')


def test_a_preemption_leaves_its_checkpoint_only_until_the_next(tiny_config, tmp_path):
    cut = dict(work_dir=str(tmp_path / 'cut'))
    stop_at(tiny_config, 4, send(signal.SIGTERM), **cut)
    assert names(tmp_path / 'cut') == ['epoch_1.pth', 'iter_5.pth']
    stop_at(tiny_config, 6, send(signal.SIGINT), resume=True, **cut)
    assert names(tmp_path / 'cut') == ['epoch_1.pth', 'iter_7.pth']
    train(tiny_config, resume=True, **cut)
    assert names(tmp_path / 'cut') == ['epoch_1.pth', 'epoch_2.pth']


def test_a_checkpoint_that_was_due_at_a_preemption_stays(tiny_config, tmp_path):
    cut = {
        'work_dir': str(tmp_path / 'cut'),
        'default_hooks.checkpoint.by_epoch': False,
        'default_hooks.checkpoint.interval': 2,
    }
    stop_at(tiny_config, 3, send(signal.SIGTERM), **cut)
    train(tiny_config, resume=True, **cut)
    assert names(tmp_path / 'cut') == [f'iter_{i}.pth' for i in (2, 4, 6, 8)]


def test_old_checkpoints_are_deleted_after_the_next_is_whole(tiny_config, tmp_path):
    tiny_config.default_hooks.checkpoint.max_keep_ckpts = 2
    tiny_config.train_cfg.max_epochs = 3
    tiny_config.work_dir = str(tmp_path / 'cut')
    seen = []
    tiny_config.custom_hooks.append(call_at(8, lambda _: seen.append(names(tmp_path / 'cut'))))
    train(tiny_config)
    assert seen == [['epoch_1.pth', 'epoch_2.pth']]
    assert names(tmp_path / 'cut') == ['epoch_2.pth', 'epoch_3.pth']


def test_a_process_that_loads_data_ends_after_its_training_was_killed(monkeypatch):
    monkeypatch.setattr(preemption, '_SECONDS', 0.1)
    reader, writer = os.pipe()
    training = os.fork()
    if not training:
        if not (worker := os.fork()):
            preemption.leave_signals_to_training(0)
            os.write(writer, b'ready')
            threading.Event().wait()  # as one whose last batch nobody reads
        os.write(writer, f' {worker} '.encode())
        threading.Event().wait()
    os.close(writer)
    said = b''
    while b'ready' not in said or said.count(b' ') < 2:
        said += os.read(reader, 99)
    worker = int(said.replace(b'ready', b''))
    os.kill(worker, signal.SIGTERM)  # of a cluster, which the training answers for both
    os.kill(training, signal.SIGKILL)
    os.waitpid(training, 0)
    try:
        is_closed, *_ = select.select([reader], [], [], 20)
        assert is_closed, 'the worker still lives'
    finally:
        if not is_closed:
            os.kill(worker, signal.SIGKILL)
        os.close(reader)
