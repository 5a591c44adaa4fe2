"""Collate functions: from samples to a batch."""

import pytest
import torch

from xmodal.datasets import stack_images


def sample(value, height=2):
    return {'inputs': torch.full((3, height, 2), value, dtype=torch.uint8), 'data_samples': value}


def test_images_become_one_tensor_and_data_samples_stay_a_list():
    batch = stack_images([sample(5), sample(7)])
    assert batch['inputs'].shape == (2, 3, 2, 2)
    assert batch['inputs'][:, 0, 0, 0].tolist() == batch['data_samples'] == [5, 7]


def test_images_of_different_sizes_are_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match=r'\(3, 2, 2\), \(3, 4, 2\).*ResizeImage'):
        stack_images([sample(0), sample(1, height=4)])
