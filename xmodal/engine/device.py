"""The device that a process computes on."""

import os


def device_of_process(name: str) -> str:
    """For 'cuda' the GPU of this process: torchrun starts one process for each GPU of a machine.

    Other names, 'cpu' or 'cuda:1', stay as they are.
    """
    return f'cuda:{os.environ.get("LOCAL_RANK", 0)}' if name == 'cuda' else name
