"""Classes by vectors."""

import pytest
import torch
from labelled import labelled
from torch.nn.functional import layer_norm, normalize, relu

from xmodal.models import AlbefVectorClassifier


@pytest.fixture
def model(config):
    """A tiny model with three classes."""
    base = config()
    head = dict(type='ClassificationHead', num_classes=3)
    return AlbefVectorClassifier(base['data_preprocessor'], base['backbone'], head, 0.5)


def test_logits_are_of_the_text_s_vector_and_its_similarity_with_the_image(model, batch):
    model.eval()
    inputs = batch(size=3)
    image = normalize(model.backbone.encode_image(inputs.images).embedding, dim=1)
    text = normalize(
        model.backbone.encode_text(inputs.input_ids, inputs.attention_mask).embedding, dim=1
    )
    first, _, last = model.heads['classification'].classifier
    for row, logits in enumerate(model.tensor(inputs)):
        cosine = sum(a * b for a, b in zip(image[row], text[row], strict=True)) / 0.5
        read = torch.cat([layer_norm(text[row], text[row].shape), cosine[None]])
        expected = last.weight @ relu(first.weight @ read + first.bias) + last.bias
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)


def test_it_learns_what_the_image_decides(model, batch):
    """The same text has one class with one image, another with another."""
    model.train()
    inputs = batch(size=2)
    ids, mask = (
        x[:1].expand(2, -1).contiguous() for x in (inputs.input_ids, inputs.attention_mask)
    )
    inputs = inputs._replace(input_ids=ids, attention_mask=mask)
    samples = labelled([0, 2])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        logs = model.loss(inputs, samples)
        optimizer.zero_grad()
        logs['loss_classification'].backward()
        optimizer.step()
    model.eval()
    assert [sample.predicted for sample in model.predict(inputs, samples)] == [0, 2]
