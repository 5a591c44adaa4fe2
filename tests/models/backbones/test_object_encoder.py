"""Object-level embeddings and the object relationship encoder."""

import pytest
import torch
from torch.nn.functional import layer_norm

from xmodal.models.backbones import ObjectEncoder
from xmodal.structures import Regions


def make_encoder(depth=2):
    encoder = ObjectEncoder(feature_dims=12, embed_dims=16, depth=depth, num_heads=2).eval()
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return encoder


def random_regions(images=2, regions=5, width=12):
    mask = torch.ones(images, regions, dtype=torch.bool)
    return Regions(torch.randn(images, regions, width), mask, torch.rand(images, regions, 4))


@torch.no_grad()
def test_features_and_boxes_are_normalised_and_averaged():
    embedding, regions = make_encoder().embedding, random_regions()
    for image in range(2):
        for region in range(5):
            f, p = regions.features[image, region], regions.boxes[image, region]
            parts = [
                layer_norm(layer.weight @ x + layer.bias, (16,), norm.weight, norm.bias, 1e-12)
                for layer, norm, x in (
                    (embedding.features, embedding.features_norm, f),
                    (embedding.boxes, embedding.boxes_norm, p),
                )
            ]
            actual = embedding(regions.features, regions.boxes)[image, region]
            torch.testing.assert_close(actual, (parts[0] + parts[1]) / 2, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_embed_and_encode_are_the_two_steps_of_forward():
    encoder, regions = make_encoder(), random_regions()
    embedded = encoder.embed(regions)
    assert embedded.embeddings.equal(encoder.embedding(regions.features, regions.boxes))
    assert encoder.encode(embedded).embeddings.equal(encoder(regions).embeddings)


@torch.no_grad()
def test_padding_changes_no_output():
    encoder, regions = make_encoder(), random_regions()
    padded = Regions(
        torch.cat([regions.features, torch.randn(2, 3, 12)], 1),
        torch.arange(8).expand(2, -1) < 5,
        torch.cat([regions.boxes, torch.rand(2, 3, 4)], 1),
    )
    actual, plain = encoder(padded), encoder(regions)
    torch.testing.assert_close(actual.embeddings[:, :5], plain.embeddings, atol=1e-5, rtol=1e-5)
    assert actual.boxes is padded.boxes and actual.attention_mask is padded.attention_mask


@torch.no_grad()
def test_the_order_of_regions_does_not_matter():
    encoder, regions = make_encoder(), random_regions()
    order = torch.tensor([3, 0, 4, 1, 2])
    permuted = Regions(regions.features[:, order], regions.attention_mask, regions.boxes[:, order])
    actual, plain = encoder(permuted).embeddings, encoder(regions).embeddings[:, order]
    torch.testing.assert_close(actual, plain, atol=1e-5, rtol=1e-5)


def test_regions_of_another_width_or_without_boxes_are_refused():
    with pytest.raises(ValueError, match='8 wide.*feature_dims=12'):
        make_encoder()(random_regions(width=8))
    with pytest.raises(ValueError, match='boxes'):
        make_encoder()(random_regions()._replace(boxes=None))
