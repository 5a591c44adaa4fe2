"""The contrastive loss against a literal loop."""

import math

import pytest
import torch

from xmodal.models.losses import contrastive_loss

QUERIES, CANDIDATES = 4, 7


def random_case():
    """Logits, the teacher's logits, and one to three positives for each query."""
    logits = torch.randn(QUERIES, CANDIDATES).requires_grad_()
    teacher_logits = torch.randn(QUERIES, CANDIDATES)
    positives = torch.zeros(QUERIES, CANDIDATES, dtype=torch.bool)
    for query, columns in enumerate(([0], [1, 4], [2, 3, 5], [3])):
        positives[query, columns] = True
    return logits, teacher_logits, positives


def literal_loss(logits, positives, teacher_logits, alpha, candidates):
    """Query by query, over the candidates that count."""
    losses = []
    for query in range(QUERIES):
        total = math.fsum(math.exp(logits[query, k]) for k in candidates)
        teacher_total = math.fsum(math.exp(teacher_logits[query, k]) for k in candidates)
        num_positives = sum(bool(positives[query, k]) for k in candidates)
        loss = 0.0
        for k in candidates:
            hard_target = float(positives[query, k]) / num_positives
            soft_target = math.exp(teacher_logits[query, k]) / teacher_total
            target = (1 - alpha) * hard_target + alpha * soft_target
            loss -= target * math.log(math.exp(logits[query, k]) / total)
        losses.append(loss)
    return torch.tensor(losses)


@pytest.mark.parametrize('alpha', [0.0, 0.4, 1.0])
@pytest.mark.parametrize('empty', [[], [6], [0, 6]])
def test_each_query_has_the_cross_entropy_with_positives_and_soft_targets(alpha, empty):
    logits, teacher_logits, positives = random_case()
    positives[0, 1] = True  # of which one stays where entry 0 is empty
    is_empty = torch.zeros(CANDIDATES, dtype=torch.bool)
    is_empty[empty] = True
    positives &= ~is_empty
    candidates = [k for k in range(CANDIDATES) if k not in empty]
    actual = contrastive_loss(logits, positives, teacher_logits, alpha, is_empty if empty else None)
    expected = literal_loss(logits.detach(), positives, teacher_logits, alpha, candidates)
    torch.testing.assert_close(actual.detach(), expected)
    actual.sum().backward()
    assert logits.grad.isfinite().all() and logits.grad[:, candidates].any()
    assert (logits.grad[:, empty] == 0).all()


def test_without_soft_targets_one_positive_gives_the_cross_entropy():
    logits, teacher_logits, _ = random_case()
    labels = torch.tensor([3, 0, 6, 2])
    positives = torch.nn.functional.one_hot(labels, CANDIDATES).bool()
    expected = torch.nn.functional.cross_entropy(logits, labels, reduction='none')
    torch.testing.assert_close(contrastive_loss(logits, positives), expected)
    unweighted = contrastive_loss(logits, positives, teacher_logits, 0.0)
    torch.testing.assert_close(unweighted, expected)


def test_no_gradient_reaches_the_teacher():
    logits, teacher_logits, positives = random_case()
    teacher_logits.requires_grad_()
    contrastive_loss(logits, positives, teacher_logits, 0.4).sum().backward()
    assert teacher_logits.grad is None
