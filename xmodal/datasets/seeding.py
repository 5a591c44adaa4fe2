"""Random choices that follow from a sample's identity, not from earlier random choices."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from xmodal.hashing import hash_text


def derive_seed(*parts: object) -> int:
    """A 63-bit seed from any objects with a stable ``repr``."""
    return hash_text(repr(parts))


def seed_torch(seed: int) -> None:
    """Seeds torch's generators, without the 1 ms that ``torch.manual_seed`` takes on a CPU.

    For each kind of device that is not in use, it writes down where it was called from.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.random.default_generator.manual_seed(seed)


class SeededDataset:
    """A dataset whose random choices follow from its seed, or else from that of the run.

    Args:
        seed: None for that of the run (``randomness.seed``), which is 0 outside of a run.
    """

    metainfo: ClassVar[dict] = {}  # without it MMEngine's loops warn of metrics that read it

    def __init__(self, seed: int | None) -> None:
        self.seed, self._has_own = seed or 0, seed is not None

    def set_run_seed(self, seed: int) -> None:
        """Takes the seed of the run, unless the dataset has one of its own."""
        if not self._has_own:
            self.seed = seed


def set_run_seed(dataset: Dataset, seed: int | None) -> None:
    """Gives a dataset the seed of the run; one of another library has its own rules."""
    # Not by its class: MMEngine wraps it for num_batch_per_epoch, and passes on its methods.
    if seed is not None and hasattr(dataset, 'set_run_seed'):
        dataset.set_run_seed(seed)


@contextmanager
def isolated_random(*parts: object) -> Iterator[None]:
    """Seeds the generators of Python, NumPy and torch from ``parts``, and restores them afterwards.

    Transforms use the global generators. Within this context a sample gets the same random numbers
    in whichever process it is made, and making it in the main process does not affect anything
    else. A worker process only makes samples, so it saves the time of restoring.
    """
    seed = derive_seed(*parts)
    in_worker = get_worker_info() is not None
    if not in_worker:
        states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.random.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        if not in_worker:
            random.setstate(states[0])
            np.random.set_state(states[1])
            torch.set_rng_state(states[2])
