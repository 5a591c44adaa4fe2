"""Several processes, and the script that started them, end together."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from test_train_and_test import config_file  # noqa: F401


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def processes_with(word):
    """The ids of the processes whose command line has a word, which no other has."""
    found = subprocess.run(['pgrep', '-f', word], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


@pytest.fixture
def training(config_file, tmp_path):  # noqa: F811
    """A training on two processes without an end, after its first epoch, and its folder."""
    run = tmp_path / 'run'
    environment = os.environ | {'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}'}
    options = ['--work-dir', str(run), '--cfg-options', 'train_cfg.max_epochs=100000']
    script = subprocess.Popen(
        ['tools/dist_train.sh', config_file, '2', *options],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for((run / 'epoch_1.pth').is_file)
        yield script, run
    finally:
        for pid in processes_with(str(run)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        script.wait()


def test_a_script_that_is_killed_takes_its_processes_along(training):
    script, run = training
    assert len(processes_with(str(run))) >= 4  # the script, the launcher and two ranks
    script.kill()
    script.wait()
    wait_for(lambda: not processes_with(str(run)))
    assert '/iter_' in (run / 'last_checkpoint').read_text()


def test_after_ctrl_c_all_save_and_the_script_ends_with_130(training):
    script, run = training
    script.send_signal(signal.SIGINT)
    assert script.wait(timeout=120) == 130
    assert not processes_with(str(run))
    checkpoint = Path((run / 'last_checkpoint').read_text())
    assert checkpoint.name.startswith('iter_') and checkpoint.is_file()


@pytest.mark.skipif(sys.platform != 'linux', reason='/proc is read')
@pytest.mark.parametrize('number, status', [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_that_comes_before_the_processes_ends_the_launcher(tmp_path, number, status):
    python = tmp_path / 'python'  # in the place of a launcher that has started nothing yet
    python.write_text(f'#!/bin/sh\ntouch {tmp_path}/started\nexec sleep 100\n')
    python.chmod(0o755)
    script = subprocess.Popen(
        ['tools/dist_train.sh', 'config.py', '2'], env=os.environ | {'PYTHON': str(python)}
    )
    wait_for((tmp_path / 'started').is_file)
    (launcher,) = Path(f'/proc/{script.pid}/task/{script.pid}/children').read_text().split()
    script.send_signal(number)
    assert script.wait(timeout=10) == status
    assert not Path(f'/proc/{launcher}').exists()
