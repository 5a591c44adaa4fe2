"""How random numbers are seeded."""

import random

import numpy as np
import pytest
import torch

from xmodal.datasets.base import SampleDataset
from xmodal.datasets.seeding import seed_torch


@pytest.mark.parametrize('has_accelerator', [False, True])
def test_torch_is_seeded_as_by_its_own_function(has_accelerator, monkeypatch):
    torch.manual_seed(5)
    expected = torch.rand(3)
    seeds, seed_all = [], torch.manual_seed
    monkeypatch.setattr(torch.accelerator, 'is_available', lambda: has_accelerator)
    monkeypatch.setattr(torch, 'manual_seed', lambda seed: seeds.append(seed) or seed_all(seed))
    seed_torch(5)
    assert torch.rand(3).equal(expected)
    assert seeds == [5] * has_accelerator  # which seeds the generators of all devices


class Draws(SampleDataset):
    """Nothing but what a transform draws, by each of the three global generators."""

    def __init__(self, **options):
        super().__init__([self.draw], **options)

    def __len__(self):
        return 2

    def get_data_info(self, index, rng):
        return {}

    @staticmethod
    def draw(results):
        return {'drawn': (random.random(), np.random.rand(), torch.rand(()).item())}


def test_a_transform_that_draws_makes_the_same_sample_in_every_test():
    one, again, other_seed = Draws(test_mode=True), Draws(test_mode=True), Draws(test_mode=True)
    other_seed.set_run_seed(7)
    first, second = one[0], one[1]
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()
    assert all(x != y for x, y in zip(first['drawn'], second['drawn'], strict=True))
    assert again[1] == second and again[(0, 3)] == first and other_seed[0] == first
    assert random.getstate() == states[0]  # what else the process draws goes on as before
    assert (np.random.get_state()[1] == states[1]).all()
    assert torch.get_rng_state().equal(states[2])
