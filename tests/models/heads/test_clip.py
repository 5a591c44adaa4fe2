"""CLIP's loss."""

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from xmodal.models.heads import CLIPLoss


def vectors(count=5, dims=4):
    return [normalize(torch.randn(count, dims), dim=1) for _ in range(2)]


def test_of_different_pairs_it_is_cross_entropy_both_ways():
    head, (image, text) = CLIPLoss(0.1), vectors()
    logits, labels = image @ text.T / 0.1, torch.arange(5)
    expected = (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2
    found = head.loss(image, text, torch.eye(5, dtype=torch.bool))
    torch.testing.assert_close(found['loss'], expected)
    torch.testing.assert_close(found['temperature'], torch.tensor(0.1))


def test_pairs_of_one_image_share_the_target():
    head, (image, text) = CLIPLoss(0.1), vectors(3)
    same = torch.eye(3, dtype=torch.bool)
    same[0, 2] = same[2, 0] = True
    logits = image @ text.T / 0.1
    total = 0.0
    for one in (logits, logits.T):
        for row in range(3):
            own = [column for column in range(3) if same[row, column]]
            total -= sum(float(one[row].log_softmax(0)[column]) for column in own) / len(own)
    found = head.loss(image, text, same)['loss']
    torch.testing.assert_close(found, torch.tensor(total / 6))


def test_the_scale_is_held_between_1_and_100_and_can_leave_its_bounds():
    image, _ = vectors(50, 3)
    same = torch.eye(50, dtype=torch.bool)
    for start, held, leads_in, leads_out in ((6.0, 100, -image, image), (-3.0, 1, image, -image)):
        head = CLIPLoss()
        torch.nn.init.constant_(head.log_scale, start)
        found = head.loss(image, leads_out, same)
        found['loss'].backward()
        assert found['temperature'].item() == pytest.approx(1 / held)
        assert head.log_scale.grad == 0
        head.loss(image, leads_in, same)['loss'].backward()
        assert head.log_scale.grad * (start - 1) > 0  # a step down leads in again


def test_it_is_float32_under_autocast():
    head, (image, text) = CLIPLoss(0.01), vectors(64, 8)
    same = torch.eye(64, dtype=torch.bool)
    with torch.autocast('cpu', torch.bfloat16):
        found = head.loss(image, text, same)['loss']
    assert torch.equal(found, head.loss(image, text, same)['loss'])
