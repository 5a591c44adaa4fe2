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
def tagger(preprocessor):
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


def samples(*tags):
    return [DataSample(tags=list(own)) for own in tags]


@torch.no_grad()
def test_each_picture_is_classified_from_the_patches_that_show_it(tagger):
    pictures = torch.randn(8, 3, 16, 16)
    found = tagger.tag(pictures)
    for first in (0, 4):
        a, b, c, d = pictures[first : first + 4]
        mosaic = torch.cat([torch.cat([a, b], 2), torch.cat([c, d], 2)], 1)
        patches = tagger.image_encoder(mosaic[None]).embeddings[0, 1:].view(4, 4, -1)
        corners = [patches[:2, :2], patches[:2, 2:], patches[2:, :2], patches[2:, 2:]]
        for place, corner in enumerate(corners):
            expected = tagger.classifier(sum(corner.flatten(0, 1)) / 4)
            torch.testing.assert_close(found[first + place], expected)


def test_pictures_that_fill_no_mosaic_are_an_error(tagger):
    with pytest.raises(ValueError, match='6 pictures.*2 × 2.*multiple of 4'):
        tagger.tag(torch.randn(6, 3, 16, 16))


def test_the_loss_sums_over_tags_and_the_share_counts_those_found(tagger):
    logits = torch.tensor([[2.0, -1.0, 0.5, 0.0, -3.0], [0.0, 1.0, -1.0, 3.0, 2.0]])
    tags = [(0, 1), (3,)]
    tagger.tag = lambda images: logits
    logs = tagger.loss(SimpleNamespace(images=None), samples(*tags))
    expected = 0.0
    for row, own in zip(logits.tolist(), tags, strict=True):
        for tag, logit in enumerate(row):
            probability = 1 / (1 + math.exp(-logit))
            expected -= math.log(probability if tag in own else 1 - probability)
    torch.testing.assert_close(logs['loss_tags'], torch.tensor(expected / 2))
    assert logs['tags_found'] == pytest.approx(2 / 3)  # 0 of (0, 1); 3


def test_it_learns_a_few_pictures(tagger):
    pictures = torch.randn(8, 3, 16, 16)
    batch = ImageTextBatch(pictures, *[None] * 5)
    own = samples(*((number % 3, 3 + number % 2) for number in range(8)))
    optimizer = torch.optim.Adam(tagger.parameters(), 3e-3)
    for _ in range(120):
        logs = tagger(batch, own, mode='loss')
        optimizer.zero_grad()
        logs['loss_tags'].backward()
        optimizer.step()
    assert logs['tags_found'] == 1 and logs['loss_tags'] < 0.3
