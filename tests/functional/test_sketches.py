"""Sec. 3.2 of T-EMDE against literal sums."""

import math

import pytest
import torch
from literal_equations import padding, random_tokens

from xmodal import functional as F


def test_distances_to_centroids_are_squared_euclidean():
    projected = random_tokens(5, 6, 4).view(5, 2, 3, 4)
    centroids = random_tokens(2, 3, 4, seed=1)
    actual = F.centroid_distance(projected, centroids)
    assert actual.shape == (5, 2, 3)
    for token in range(5):
        for n in range(2):
            for k in range(3):
                pairs = zip(projected[token, n, k], centroids[n, k], strict=True)
                expected = sum((a - b) ** 2 for a, b in pairs)
                torch.testing.assert_close(actual[token, n, k], expected)


def test_soft_assignments_are_a_softmax_of_the_negative_distance():
    distance = random_tokens(2, 3, 4).square()
    actual = F.soft_assignment(distance, torch.tensor(0.7))
    for row, expected in zip(actual.flatten(0, 1), distance.flatten(0, 1), strict=True):
        weights = [math.exp(-0.7 * d) for d in expected.tolist()]
        assert row.tolist() == pytest.approx([w / sum(weights) for w in weights])


def test_a_sketch_is_the_sum_over_tokens_without_padding():
    assignment, mask = random_tokens(2, 4, 6).view(2, 4, 3, 2), padding(4, [3, 1])
    assignment[~mask] = math.nan
    actual = F.sketch(assignment, mask)
    assert actual[0].equal(assignment[0, 0] + assignment[0, 1] + assignment[0, 2])
    assert actual[1].equal(assignment[1, 0])
