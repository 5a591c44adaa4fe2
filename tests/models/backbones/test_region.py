"""The encoder of region features."""

import pytest
import torch

from xmodal.models.backbones.encoder import Encoder
from xmodal.registry import MODELS
from xmodal.structures import Regions


def build(feature_dims=7, embed_dims=5):
    config = dict(type='RegionEncoder', feature_dims=feature_dims, embed_dims=embed_dims)
    return MODELS.build(config)


@torch.no_grad()
def test_a_region_is_projected_and_normalised():
    encoder, features = build(), torch.randn(2, 3, 7)
    encoder.projection.bias.normal_()
    actual = encoder(Regions(features, torch.ones(2, 3, dtype=torch.bool), None)).embeddings
    for b in range(2):
        for region in range(3):
            expected = encoder.projection.weight @ features[b, region] + encoder.projection.bias
            torch.testing.assert_close(actual[b, region], expected / expected.norm())


@torch.no_grad()
def test_embed_and_encode_are_the_two_steps_of_forward():
    encoder = build()
    regions = Regions(torch.randn(2, 3, 7), torch.ones(2, 3, dtype=torch.bool), None)
    embedded = encoder.embed(regions)
    assert embedded.embeddings.equal(encoder.projection(regions.features))
    assert encoder.encode(embedded).embeddings.equal(encoder(regions).embeddings)


def test_it_starts_with_xaviers_weights_and_no_bias():
    encoder = build(700, 500)
    assert (encoder.projection.bias == 0).all()
    limit = (6 / 1200) ** 0.5
    assert 0.99 * limit < encoder.projection.weight.abs().max() <= limit
    assert encoder.embed_dims == 500


def test_mask_and_boxes_are_passed_on():
    mask, boxes = torch.rand(2, 4) < 0.5, torch.rand(2, 4, 4)
    actual = build()(Regions(torch.randn(2, 4, 7), mask, boxes))
    assert actual.attention_mask is mask and actual.boxes is boxes and actual.grid_size is None


def test_a_region_of_zeros_gives_finite_gradients():
    encoder, features = build(), torch.randn(2, 3, 7)
    features[0, 1:] = 0
    actual = encoder(Regions(features, torch.ones(2, 3, dtype=torch.bool), None)).embeddings
    (actual * torch.randn(5)).sum().backward()
    assert (actual[0, 1:] == 0).all()
    for parameter in encoder.parameters():
        assert parameter.grad.isfinite().all() and parameter.grad.norm() < 100


def test_features_of_another_width_are_a_clear_error():
    with pytest.raises(ValueError, match='are 8 wide, and image_encoder.feature_dims=7'):
        build()(Regions(torch.randn(2, 3, 8), torch.ones(2, 3, dtype=torch.bool), None))


def test_an_encoder_says_whether_it_has_cls():
    with pytest.raises(TypeError, match='Mine does not say whether its first token is'):
        type('Mine', (Encoder,), {})
