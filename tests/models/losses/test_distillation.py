"""Cross-entropy with labels and soft targets against its formula."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from xmodal.models.losses import distilled_cross_entropy


def literal_losses(logits, labels, teacher_logits, alpha):
    """−Σ_c ((1 − α) · [c is the label] + α · q_c) log p_c, row by row."""
    losses = []
    for row, teacher_row, label in zip(
        logits.tolist(), teacher_logits.tolist(), labels.tolist(), strict=True
    ):
        total = math.fsum(math.exp(x) for x in row)
        teacher_total = math.fsum(math.exp(x) for x in teacher_row)
        losses.append(
            -math.fsum(
                ((1 - alpha) * (c == label) + alpha * math.exp(teacher_row[c]) / teacher_total)
                * math.log(math.exp(row[c]) / total)
                for c in range(len(row))
            )
        )
    return torch.tensor(losses)


@pytest.mark.parametrize('alpha', [0.0, 0.4, 1.0])
def test_targets_are_shared_between_the_label_and_the_teachers_softmax(alpha):
    logits, teacher_logits, labels = torch.randn(6, 3), torch.randn(6, 3), torch.randint(3, (6,))
    expected = literal_losses(logits, labels, teacher_logits, alpha)
    rows = distilled_cross_entropy(logits, labels, teacher_logits, alpha, reduction='none')
    torch.testing.assert_close(rows, expected)
    mean = distilled_cross_entropy(logits, labels, teacher_logits, alpha)
    torch.testing.assert_close(mean, expected.mean())


def test_without_a_teacher_the_weight_does_not_count():
    logits, labels = torch.randn(6, 3), torch.randint(3, (6,))
    actual = distilled_cross_entropy(logits, labels, None, 0.4)
    assert actual.equal(cross_entropy(logits, labels))


def test_half_precision_logits_are_compared_in_float32():
    logits, teacher_logits = torch.randn(6, 3).bfloat16(), torch.randn(6, 3).bfloat16()
    labels = torch.randint(3, (6,))
    actual = distilled_cross_entropy(logits, labels, teacher_logits, 0.4)
    assert actual.dtype == torch.float32
    expected = distilled_cross_entropy(logits.float(), labels, teacher_logits.float(), 0.4)
    assert actual.equal(expected)
