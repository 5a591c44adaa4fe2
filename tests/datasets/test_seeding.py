"""How random numbers are seeded."""

import pytest
import torch

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
