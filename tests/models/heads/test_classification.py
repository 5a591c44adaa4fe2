"""The classification head."""

import math

import pytest
import torch
from torch import nn

from xmodal.models.heads import ClassificationHead
from xmodal.structures import DataSample


def test_classes_come_from_cls_through_one_hidden_layer():
    head = ClassificationHead(4, 3)
    words = torch.randn(2, 5, 4)
    first, _, second = head.classifier
    hidden = torch.relu(words[:, 0] @ first.weight.T + first.bias)
    torch.testing.assert_close(head(words), hidden @ second.weight.T + second.bias)
    assert sum(isinstance(module, nn.Linear) for module in head.modules()) == 2


@pytest.mark.parametrize('weight', [0.0, 0.4, 1.0])
def test_targets_are_shared_between_labels_and_teacher(weight):
    logits, teacher = torch.randn(6, 3), torch.randn(6, 3)
    labels = torch.randint(3, (6,))
    expected = 0.0
    for own, other, label in zip(logits, teacher, labels, strict=True):
        target = weight * other.softmax(0)
        target[label] += 1 - weight
        expected -= (target * own.log_softmax(0)).sum() / 6
    found = ClassificationHead(4, 3).loss(logits, labels, teacher, weight)
    torch.testing.assert_close(found['loss_classification'], expected)
    assert found['accuracy'] == (logits.argmax(1) == labels).float().mean()


def test_a_prediction_is_the_likeliest_class_and_its_probabilities():
    samples = ClassificationHead(4, 3).predict(
        torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]), [DataSample(), DataSample()]
    )
    assert [sample.predicted for sample in samples] == [1, 0]
    weights = [math.exp(x) for x in (0, 2, 1)]
    expected = torch.tensor(weights) / sum(weights)
    torch.testing.assert_close(samples[0].probabilities, expected)


def test_logits_that_are_not_finite_are_no_prediction():
    with pytest.raises(ValueError, match='logits are not finite'):
        ClassificationHead(4, 2).predict(torch.tensor([[torch.nan, 0.0]]), [DataSample()])


def test_without_a_teacher_labels_are_the_targets():
    logits, labels = torch.randn(6, 3), torch.randint(3, (6,))
    head = ClassificationHead(4, 3)
    alone = head.loss(logits, labels, None, 0.4)['loss_classification']
    torch.testing.assert_close(alone, nn.functional.cross_entropy(logits, labels))
