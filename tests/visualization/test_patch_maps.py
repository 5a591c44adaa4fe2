"""Maps of patches, of cells of a grid and of a detector's boxes, against literal loops."""

import pytest
import torch
from torch.nn.functional import interpolate

from xmodal.evaluation.location import token_centres
from xmodal.models.backbones import GridExtractor, ViTImageEncoder
from xmodal.structures import ImageTextBatch, Tokens
from xmodal.visualization.patch_maps import SIDE, patch_maps


def test_patches_are_laid_out_without_cls():
    values = torch.rand(2, 3, 7)
    maps = patch_maps(values, Tokens(torch.zeros(2, 7, 4), grid_size=(2, 3)))
    assert maps.shape == (2, 3, 2, 3)
    assert maps[1, 2, 1, 0] == values[1, 2, 1 + 3]


@pytest.mark.parametrize('conv_stem', [False, True])
def test_the_map_of_a_token_lies_on_the_pixels_that_the_token_sees(conv_stem):
    encoder = ViTImageEncoder(
        image_size=40, patch_size=8, embed_dim=16, num_heads=2, depth=1, conv_stem=conv_stem
    )
    for parameter in encoder.vit.patch_embed.parameters():
        torch.nn.init.ones_(parameter)  # every pixel that a token sees counts
    images = torch.rand(1, 3, 40, 40, requires_grad=True)
    tokens = encoder.embed(images)
    row, column = 2, 3  # no edge is near
    token = 1 + row * 5 + column
    tokens.embeddings[0, token].sum().backward()
    values = torch.zeros(1, 26)
    values[0, token] = 1
    heat = interpolate(patch_maps(values, tokens)[None], (40, 40), mode='bicubic')[0, 0]
    seen = centre_of_mass(images.grad[0].abs().sum(0))
    assert centre_of_mass(heat) == pytest.approx(seen, abs=0.6)
    batch = ImageTextBatch(images, *[torch.zeros(1, 1)] * 5)
    x, y = (40 * token_centres(batch, tokens, 0)[token - 1]).tolist()
    assert (y, x) == pytest.approx(seen, abs=0.6)


def centre_of_mass(values):
    """Row and column, in pixels from the edge of the image."""
    middles = torch.arange(40) + 0.5
    total = values.sum()
    return float(middles @ values.sum(1) / total), float(middles @ values.sum(0) / total)


def test_anchors_at_corners_are_where_the_nearest_corner_has_one():
    marked = torch.zeros(1, 10, dtype=torch.bool)
    marked[0, [5, 9]] = True
    tokens = Tokens(torch.zeros(1, 10, 4), grid_size=(3, 3), at_corners=True)
    expected = torch.zeros(6, 6, dtype=torch.bool)
    for row in range(6):
        for column in range(6):  # the corner of cell i is at 2 i, the middle of a quarter at k + ½
            near = [min(2, round((place + 0.5) / 2)) for place in (row, column)]
            expected[row, column] = near in ([1, 1], [2, 2])
    assert torch.equal(patch_maps(marked, tokens)[0], expected)


def test_the_cells_that_an_extractor_gives_are_a_grid():
    extractor = GridExtractor('test_efficientnet', 96, pretrained=False)
    features, boxes = extractor(torch.zeros(2, 3, 96, 96, dtype=torch.uint8))
    values = torch.rand(2, 4, 9)
    stored = (boxes * 96).half().float() / 96  # pixels in a store
    maps = patch_maps(values, Tokens(features, boxes=stored.expand(2, -1, -1)))
    assert maps.equal(values.view(2, 4, 3, 3))


def test_boxes_of_a_detector_are_painted_with_the_largest_value_over_a_place():
    corners = torch.rand(2, 4, 2, 2).sort(2).values
    boxes = torch.cat([corners[:, :, 0], corners[:, :, 1]], -1)
    values = torch.randn(2, 3, 4)
    real = torch.tensor([[True] * 4, [True, True, False, False]])
    maps = patch_maps(values, Tokens(torch.zeros(2, 4, 5), real, boxes=boxes))
    assert maps.shape == (2, 3, SIDE, SIDE)
    for b in range(2):
        for row in range(0, SIDE, 3):
            for column in range(0, SIDE, 3):
                x, y = (column + 0.5) / SIDE, (row + 0.5) / SIDE
                over = []
                for region in range(4 if b == 0 else 2):
                    x1, y1, x2, y2 = boxes[b, region].tolist()
                    if x1 <= x < x2 and y1 <= y < y2:
                        over.append(values[b, :, region])
                expected = torch.stack(over).amax(0) if over else torch.zeros(3)
                assert maps[b, :, row, column].equal(expected), (b, row, column)
    marked = patch_maps(values > 0.5, Tokens(torch.zeros(2, 4, 5), real, boxes=boxes))
    assert marked.dtype == torch.bool and marked.equal(maps > 0.5)


def test_regions_without_boxes_are_a_clear_error():
    with pytest.raises(ValueError, match='regions of the image have no boxes'):
        patch_maps(torch.rand(1, 2, 4), Tokens(torch.zeros(1, 4, 5)))
