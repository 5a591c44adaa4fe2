"""CLIP's loss."""

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from xmodal.models.losses import CLIPLoss


def random_embeddings(count=5, dims=4):
    return [normalize(torch.randn(count, dims), dim=1) for _ in range(2)]


def test_of_different_pairs_it_is_the_cross_entropy_of_both_directions():
    loss, (image, text) = CLIPLoss(0.1), random_embeddings()
    logits, labels = image @ text.T / 0.1, torch.arange(5)
    expected = (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2
    torch.testing.assert_close(loss(image, text, torch.eye(5, dtype=torch.bool)), expected)
    torch.testing.assert_close(loss.temperature(), torch.tensor(0.1))


def test_pairs_of_one_image_share_the_target():
    loss, (image, text) = CLIPLoss(0.1), random_embeddings(3)
    positives = torch.eye(3, dtype=torch.bool)
    positives[0, 2] = positives[2, 0] = True
    logits = image @ text.T / 0.1
    total = 0.0
    for table in (logits, logits.T):
        for row in range(3):
            columns = [column for column in range(3) if positives[row, column]]
            log_probabilities = table[row].log_softmax(0)
            total -= sum(float(log_probabilities[c]) for c in columns) / len(columns)
    torch.testing.assert_close(loss(image, text, positives), torch.tensor(total / 6))


def test_the_inverse_temperature_is_kept_between_1_and_100_and_can_leave_its_bounds():
    image, _ = random_embeddings(50, 3)
    positives = torch.eye(50, dtype=torch.bool)
    for start, bounded, leads_in, leads_out in (
        (6.0, 100, -image, image),
        (-3.0, 1, image, -image),
    ):
        loss = CLIPLoss()
        log_scale = loss.temperature.log
        torch.nn.init.constant_(log_scale, start)
        loss(image, leads_out, positives).backward()
        assert loss.temperature().item() == pytest.approx(1 / bounded)
        assert log_scale.grad == 0
        loss(image, leads_in, positives).backward()
        assert log_scale.grad * (start - 1) > 0  # a step down the gradient leads inside again


def test_under_autocast_it_is_computed_in_float32():
    loss, (image, text) = CLIPLoss(0.01), random_embeddings(64, 8)
    positives = torch.eye(64, dtype=torch.bool)
    with torch.autocast('cpu', torch.bfloat16):
        actual = loss(image, text, positives)
    assert torch.equal(actual, loss(image, text, positives))
