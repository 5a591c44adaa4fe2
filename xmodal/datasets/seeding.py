"""Random choices that follow from what is asked, not from what was drawn before."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

import numpy as np
import torch
from torch.utils.data import get_worker_info


def derive_seed(*parts: object) -> int:
    """A 63-bit seed from anything with a stable ``str``."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), 'big') >> 1


@contextmanager
def isolated_random(*parts: object) -> Iterator[None]:
    """Seeds Python's, NumPy's and torch's generators from ``parts``, and puts them back after.

    Transforms draw from the global generators. Within this context a sample gets the same draws in
    whatever process it is made, and making it in the main process disturbs nothing else. A worker
    process makes nothing else, and saves the time to put them back.
    """
    seed = derive_seed(*parts)
    in_worker = get_worker_info() is not None
    if not in_worker:
        before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.random.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        if not in_worker:
            random.setstate(before[0])
            np.random.set_state(before[1])
            torch.set_rng_state(before[2])
