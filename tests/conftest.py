"""What all tests share."""

import os

# Before torch or transformers are imported: no hub, and no threads that fight over few cores.
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('OMP_NUM_THREADS', '1')

import pytest
import torch

from xmodal.registry import register_all


@pytest.fixture(scope='session', autouse=True)
def _registered_components() -> None:
    torch.set_num_threads(1)
    register_all()
