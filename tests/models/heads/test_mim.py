"""Masked image modelling."""

import pytest
import torch

from xmodal.models.heads import MIMHead


def make_head(**options):
    return MIMHead(**{'embed_dims': 6, 'patch_size': 4, 'block': 8, **options})


def test_whole_squares_are_hidden():
    head = make_head()
    mask = head.mask(torch.zeros(5, 3, 24, 32)).view(5, 6, 8)
    squares = mask.view(5, 3, 2, 4, 2)
    assert squares.all(4).all(2).equal(squares.any(4).any(2))
    assert (squares.all(4).all(2).flatten(1).sum(1) == 8).all()  # 0.6 of 12, rounded up


def test_images_hide_squares_of_their_own():
    mask = make_head().mask(torch.zeros(5, 3, 32, 32))
    assert len(mask.unique(dim=0)) == 5


def test_a_size_that_is_no_multiple_of_the_square_is_covered():
    mask = make_head(ratio=1.0).mask(torch.zeros(2, 3, 20, 28))
    assert mask.shape == (2, 5 * 7)
    assert mask.all()


def test_the_loss_is_the_l1_distance_of_hidden_pixels():
    head, images = make_head(), torch.randn(2, 3, 8, 12)
    patches, mask = torch.randn(2, 7, 6), torch.rand(2, 6) < 0.5
    mask[0, 0] = True
    total, count = 0.0, 0
    for b in range(2):
        for m in range(6):
            if mask[b, m]:
                row, column = divmod(m, 3)
                true = images[b, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4].flatten()
                total += (head.decoder(patches[b, 1 + m]) - true).abs().sum().item()
                count += true.numel()
    found = head.loss(patches, images, mask)['loss_mim']
    assert found.item() == pytest.approx(total / count, rel=1e-5)


def test_visible_pixels_cost_nothing():
    head, images = make_head(), torch.randn(1, 3, 8, 8)
    mask = torch.tensor([[True, False, False, False]])
    patches = torch.randn(1, 5, 6)
    other = images.clone()
    other[:, :, 4:], other[:, :, :, 4:] = 0, 0
    assert (
        head.loss(patches, images, mask)['loss_mim'] == head.loss(patches, other, mask)['loss_mim']
    )


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        (dict(block=6), 'heads.mim.block=6 must be a multiple of the patch, 4'),
        (dict(source='text'), "heads.mim.source='text', expected 'fusion' or 'image_encoder'"),
    ],
)
def test_a_wrong_option_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_head(**wrong)
