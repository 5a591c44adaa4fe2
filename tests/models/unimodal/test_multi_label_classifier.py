"""The pre-training of an image encoder on mosaics."""

import math
from types import SimpleNamespace

import pytest
import torch

from xmodal.models import MultiLabelClassifier
from xmodal.structures import DataSample, ImageTextBatch

ENCODER = dict(
    type='ViTImageEncoder',
    image_size=32,
    patch_size=8,
    embed_dim=16,
    num_heads=2,
    depth=1,
    conv_stem=True,
)


@pytest.fixture
def classifier(preprocessor):
    torch.manual_seed(0)
    return MultiLabelClassifier(preprocessor, ENCODER, num_tags=5)


@pytest.fixture
def preprocessor(vocabulary):
    return dict(
        type='ImageTextPreprocessor',
        mean=[0.0] * 3,
        std=[1.0] * 3,
        tokenizer=dict(pretrained=vocabulary),
    )


def samples(*tags_of_images):
    return [DataSample(tags=list(tags)) for tags in tags_of_images]


@torch.no_grad()
def test_each_image_is_classified_from_its_patches(classifier):
    images = torch.randn(8, 3, 16, 16)
    actual = classifier.tensor(SimpleNamespace(images=images))
    for first in (0, 4):
        a, b, c, d = images[first : first + 4]
        mosaic = torch.cat([torch.cat([a, b], 2), torch.cat([c, d], 2)], 1)
        patches = classifier.image_encoder(mosaic[None]).embeddings[0, 1:].view(4, 4, -1)
        corners = [patches[:2, :2], patches[:2, 2:], patches[2:, :2], patches[2:, 2:]]
        for index, corner in enumerate(corners):
            expected = classifier.classifier(sum(corner.flatten(0, 1)) / 4)
            torch.testing.assert_close(actual[first + index], expected)


def test_images_that_fill_no_mosaic_are_an_error(classifier):
    with pytest.raises(ValueError, match='6 images.*2 × 2.*multiple of 4'):
        classifier.tensor(SimpleNamespace(images=torch.randn(6, 3, 16, 16)))


def test_the_loss_sums_over_tags_and_the_recall_counts_predicted_ones(classifier):
    logits = torch.tensor([[2.0, -1.0, 0.5, 0.0, -3.0], [0.0, 1.0, -1.0, 3.0, 2.0]])
    tags = [(0, 1), (3,)]
    classifier.tensor = lambda batch: logits
    logs = classifier.loss(SimpleNamespace(images=None), samples(*tags))
    expected = 0.0
    for row, tags_of_image in zip(logits.tolist(), tags, strict=True):
        for tag, logit in enumerate(row):
            probability = 1 / (1 + math.exp(-logit))
            expected -= math.log(probability if tag in tags_of_image else 1 - probability)
    torch.testing.assert_close(logs['loss_tags'], torch.tensor(expected / 2))
    assert logs['tags_found'] == pytest.approx(2 / 3)  # 0 of (0, 1); 3


def test_it_overfits_a_few_images(classifier):
    images = torch.randn(8, 3, 16, 16)
    batch = ImageTextBatch(images, *[None] * 5)
    labelled = samples(*((index % 3, 3 + index % 2) for index in range(8)))
    optimizer = torch.optim.Adam(classifier.parameters(), 3e-3)
    for _ in range(120):
        logs = classifier(batch, labelled, mode='loss')
        optimizer.zero_grad()
        logs['loss_tags'].backward()
        optimizer.step()
    assert logs['tags_found'] == 1 and logs['loss_tags'] < 0.3
