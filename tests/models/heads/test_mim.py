"""Masked image modelling."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from xmodal.models.backbones import ViTImageEncoder
from xmodal.models.heads import MIMHead
from xmodal.registry import MODELS


def make_head(**options):
    return MIMHead(**{'embed_dims': 6, 'patch_size': 4, 'block': 8, **options})


def test_whole_squares_are_masked():
    head = make_head()
    mask = head.mask_patches(torch.zeros(5, 3, 24, 32)).view(5, 6, 8)
    squares = mask.view(5, 3, 2, 4, 2)
    assert squares.all(4).all(2).equal(squares.any(4).any(2))
    assert (squares.all(4).all(2).flatten(1).sum(1) == 8).all()  # 0.6 of 12, rounded up


def test_each_image_has_other_squares_masked():
    mask = make_head().mask_patches(torch.zeros(5, 3, 32, 32))
    assert len(mask.unique(dim=0)) == 5


def test_a_size_that_is_no_multiple_of_the_square_is_covered():
    mask = make_head(ratio=1.0).mask_patches(torch.zeros(2, 3, 20, 28))
    assert mask.shape == (2, 5 * 7)
    assert mask.all()


def test_the_loss_is_the_l1_distance_of_masked_pixels():
    head, images = make_head(), torch.randn(2, 3, 8, 12)
    patches, mask = torch.randn(2, 7, 6), torch.rand(2, 6) < 0.5
    mask[0, 0] = True
    total, count = 0.0, 0
    for b in range(2):
        for m in range(6):
            if mask[b, m]:
                row, column = divmod(m, 3)
                pixels = images[b, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4].flatten()
                total += (head.decoder(patches[b, 1 + m]) - pixels).abs().sum().item()
                count += pixels.numel()
    actual = head.pixel_loss(patches, images, mask)
    assert actual.item() == pytest.approx(total / count, rel=1e-5)


def test_visible_pixels_add_nothing_to_the_loss():
    head, images = make_head(), torch.randn(1, 3, 8, 8)
    mask = torch.tensor([[True, False, False, False]])
    patches = torch.randn(1, 5, 6)
    repainted = images.clone()
    repainted[:, :, 4:], repainted[:, :, :, 4:] = 0, 0
    assert head.pixel_loss(patches, images, mask) == head.pixel_loss(patches, repainted, mask)


@torch.no_grad()
@pytest.mark.parametrize('conv_stem', [False, True])
def test_no_patch_sees_the_pixels_of_masked_ones(conv_stem, monkeypatch):
    encoder = ViTImageEncoder(
        image_size=32, patch_size=4, embed_dim=16, num_heads=2, depth=1, conv_stem=conv_stem
    )
    model = SimpleNamespace(backbone=SimpleNamespace(image_tokens=encoder))
    head, masks = make_head(embed_dims=16, source='image_encoder'), []

    def keep(patches, images, patch_mask):
        masks.append(patch_mask)
        return patches

    monkeypatch.setattr(head, 'pixel_loss', keep)

    def patches(images):
        torch.manual_seed(0)  # the same squares
        return head.loss(model, SimpleNamespace(batch=SimpleNamespace(images=images)))['loss_mim']

    images = torch.randn(2, 3, 32, 32)
    expected = patches(images)
    for repainted, is_seen in ((masks[0], False), (~masks[0], True)):
        pixels = repainted.view(2, 1, 8, 8).repeat_interleave(4, 2).repeat_interleave(4, 3)
        other = torch.where(pixels, torch.randn(2, 3, 32, 32), images)
        assert torch.equal(patches(other), expected) == (not is_seen)


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        (
            dict(block=6),
            'heads.mim.block=6 must be a multiple of the patch, image_encoder.patch_size=4',
        ),
        (dict(source='text'), "heads.mim.source='text', expected 'fusion' or 'image_encoder'"),
    ],
)
def test_a_wrong_option_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_head(**wrong)


def test_an_image_encoder_that_masks_no_patches_is_refused(config):
    of_features = config(heads=['itc', 'mim'])
    encoder = dict(type='GridFeatureEncoder', feature_dims=5, embed_dims=32)
    of_features['backbone']['image_encoder'] = encoder
    with pytest.raises(ValueError, match='heads.mim masks patches of .* take a ViTImageEncoder'):
        MODELS.build(of_features)


def test_patches_of_another_width_than_the_mask_token_are_refused():
    model = nn.Module()
    model.backbone = nn.Module()
    model.backbone.image_adapter = nn.Linear(2, 2)
    with pytest.raises(ValueError, match='another width with backbone.image_adapter'):
        make_head().check(model)


def test_a_fusion_encoder_without_an_image_stream_predicts_no_patches(config):
    alone = config(heads=['mim'], streams='text')
    MODELS.build(alone)
    alone['heads']['mim'] = {**alone['heads']['mim'], 'source': 'fusion'}
    with pytest.raises(ValueError, match="lacks with streams='text': set heads.mim.source="):
        MODELS.build(alone)
