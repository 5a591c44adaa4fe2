"""The classification heads."""

import pytest
import torch
from torch import nn

from xmodal.models.heads import ClassificationHead, PooledClassificationHead


def test_classes_come_from_cls_through_one_hidden_layer():
    head = ClassificationHead(4, 3)
    words = torch.randn(2, 5, 4)
    first, _, second = head.classifier
    hidden = torch.relu(words[:, 0] @ first.weight.T + first.bias)
    torch.testing.assert_close(head(words), hidden @ second.weight.T + second.bias)
    assert sum(isinstance(module, nn.Linear) for module in head.modules()) == 2


@pytest.mark.parametrize('weight', [0.0, 0.4, 1.0])
def test_targets_are_shared_between_labels_and_teacher(weight):
    logits, teacher_logits = torch.randn(6, 3), torch.randn(6, 3)
    labels = torch.randint(3, (6,))
    expected = 0.0
    for row, teacher_row, label in zip(logits, teacher_logits, labels, strict=True):
        target = weight * teacher_row.softmax(0)
        target[label] += 1 - weight
        expected -= (target * row.log_softmax(0)).sum() / 6
    actual = ClassificationHead(4, 3).loss(logits, labels, teacher_logits, weight)
    torch.testing.assert_close(actual['loss_classification'], expected)
    assert actual['accuracy'] == (logits.argmax(1) == labels).float().mean()


def test_without_a_teacher_labels_are_the_targets():
    logits, labels = torch.randn(6, 3), torch.randint(3, (6,))
    head = ClassificationHead(4, 3)
    alone = head.loss(logits, labels, None, 0.4)['loss_classification']
    torch.testing.assert_close(alone, nn.functional.cross_entropy(logits, labels))


def test_the_images_of_a_text_are_classified_together():
    head = PooledClassificationHead(4, num_classes=3, images=2)
    pooled = torch.randn(6, 4)
    expected = [
        head.classifier(torch.cat([pooled[2 * text], pooled[2 * text + 1]])) for text in range(3)
    ]
    torch.testing.assert_close(head(pooled), torch.stack(expected))
