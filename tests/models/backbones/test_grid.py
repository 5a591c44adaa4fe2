"""The encoder of grid features, compared with the encoder of pixels that it stands for."""

import pytest
import torch

from xmodal.models.backbones import GridExtractor, GridFeatureEncoder, TimmImageEncoder
from xmodal.structures import Regions

ARCH, SIZE, WIDTH = 'test_efficientnet', 64, 12


@torch.no_grad()
def test_stored_features_give_the_tokens_of_the_pixels():
    torch.manual_seed(0)
    extractor = GridExtractor(ARCH, SIZE, pretrained=False)
    of_pixels = TimmImageEncoder(ARCH, SIZE, embed_dims=WIDTH).eval()
    of_pixels.grid.model.load_state_dict(extractor.model.state_dict())
    encoder = GridFeatureEncoder(extractor.feature_dims, WIDTH)
    encoder.load_state_dict(of_pixels.state_dict(), strict=False)
    pixels = torch.randint(256, (2, 3, SIZE, SIZE), dtype=torch.uint8)
    features, boxes = extractor(pixels)
    mask = torch.ones(features.shape[:2], dtype=torch.bool)
    found = encoder(Regions(features, mask, boxes.expand(2, -1, -1)))
    expected = of_pixels(extractor.normalize(pixels))
    torch.testing.assert_close(found.embeddings, expected.embeddings)
    assert found.grid_size == expected.grid_size == (2, 2)
    assert found.boxes is None and encoder.has_cls, 'the first token has no place'


def regions(count, width=6, real=None):
    mask = torch.arange(count)[None] < (real or count)
    return Regions(torch.randn(1, count, width), mask, None)


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        (regions(9, width=5), 'are 5 wide, and image_encoder.feature_dims=6'),
        (regions(8), r'square grid .*found \[8\] regions: of a detector, take RegionEncoder'),
        (regions(9, real=8), r'square grid .*found \[8\] regions'),
    ],
)
def test_features_of_another_width_or_a_detector_are_clear_errors(given, message):
    with pytest.raises(ValueError, match=message):
        GridFeatureEncoder(6, WIDTH)(given)
