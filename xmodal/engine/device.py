"""The device that a process computes on."""

import os

from mmengine.device import utils


def device_of_process(name: str) -> str:
    """For 'cuda' the GPU of this process: torchrun starts one process for each GPU of a machine.

    Other names, 'cpu' or 'cuda:1', stay as they are.
    """
    return f'cuda:{os.environ.get("LOCAL_RANK", 0)}' if name == 'cuda' else name


def leave_out_mps() -> None:
    """Lets MMEngine take the CPU instead of a GPU of Apple's, which has no double precision."""
    if utils.DEVICE == 'mps':
        utils.DEVICE = 'cpu'
