"""The device of a process."""

import pytest

from xmodal.engine.device import device_of_process


@pytest.mark.parametrize(
    'name, rank, device',
    [
        ('cuda', '3', 'cuda:3'),
        ('cuda', None, 'cuda:0'),
        ('cuda:1', '3', 'cuda:1'),
        ('cpu', '3', 'cpu'),
    ],
)
def test_processes_of_a_node_have_a_gpu_each(name, rank, device, monkeypatch):
    monkeypatch.delenv('LOCAL_RANK', raising=False)
    if rank:
        monkeypatch.setenv('LOCAL_RANK', rank)
    assert device_of_process(name) == device
