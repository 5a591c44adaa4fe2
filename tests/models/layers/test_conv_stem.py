"""Convolutional patches."""

import pytest
import torch
from torch.nn.functional import conv2d

from xmodal.models.backbones import ViTImageEncoder
from xmodal.models.layers.conv_stem import ConvStem


@torch.no_grad()
def test_patches_are_those_of_the_convolutions_row_by_row():
    stem = ConvStem(patch_size=4, embed_dims=8, image_size=12)
    images = torch.randn(2, 3, 12, 12)
    first, second = stem[0], stem[2]
    hidden = conv2d(images, first.weight, first.bias, stride=2, padding=1).clamp(min=0)
    assert hidden.shape[1] == 4  # half the width
    expected = conv2d(hidden, second.weight, second.bias, stride=2, padding=1)
    actual = stem(images)
    assert actual.shape == (2, 9, 8)
    for row in range(3):
        for column in range(3):
            torch.testing.assert_close(actual[:, 3 * row + column], expected[:, :, row, column])


def test_a_patch_size_that_is_no_power_of_2_is_an_error():
    with pytest.raises(ValueError, match='power of 2, got 12'):
        ConvStem(patch_size=12, embed_dims=8, image_size=24)


def test_patches_that_do_not_fill_the_image_are_an_error():
    with pytest.raises(ValueError, match='a multiple of patch_size=8, got 28'):
        ConvStem(patch_size=8, embed_dims=8, image_size=28)


@torch.no_grad()
def test_an_encoder_uses_it_instead_of_its_patch_embedding():
    encoder = ViTImageEncoder(
        image_size=24, patch_size=8, embed_dim=16, num_heads=2, depth=1, conv_stem=True
    ).eval()
    images = torch.randn(2, 3, 24, 24)
    actual = encoder(images)
    assert actual.embeddings.shape == (2, 10, 16) and actual.grid_size == (3, 3)
    vit = encoder.vit
    tokens = torch.cat([vit.cls_token.expand(2, -1, -1), vit.patch_embed(images)], 1)
    expected = vit.norm(vit.blocks(tokens + vit.pos_embed))
    torch.testing.assert_close(actual.embeddings, expected)
