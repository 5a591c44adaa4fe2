"""Crops of given boxes, on drawn images."""

import json

import numpy as np
import pytest
import torch

from xmodal.registry import MODELS


def make(folder, boxes, **options):
    annotations = [dict(image_id=0, category_id=2, bbox=box) for box in boxes]
    file = folder / 'instances.json'
    images = [dict(id=0, file_name='some/drawing.png')]
    file.write_text(json.dumps(dict(images=images, annotations=annotations)))
    return MODELS.build(dict(type='CropExtractor', boxes=str(file), **options))


def draw():
    """A grey image of 40 × 20 with a red square at (10, 4), 8 pixels large."""
    image = np.full((3, 20, 40), 127, np.uint8)
    image[:, 4:12, 10:18] = np.array([255, 0, 0], np.uint8)[:, None, None]
    return torch.from_numpy(image)


def test_a_crop_without_margin_has_the_pixels_of_its_box(tmp_path):
    extractor = make(tmp_path, [[10, 4, 8, 8], [24, 4, 8, 8]], size=4, margin=0.0)
    (regions,) = extractor.extract([draw()], ['drawing'])
    assert regions.features.shape == (2, 48) and regions.attention_mask.all()
    red, grey = regions.features.view(2, 3, 4, 4)
    # The inner cells: those of the border also have pixels next to the box, by interpolation.
    expected = torch.tensor([1.0, -1.0, -1.0])[:, None, None].expand(3, 2, 2)
    torch.testing.assert_close(red[:, 1:3, 1:3], expected, atol=1e-5, rtol=0)
    assert (grey + 1 / 255).abs().max() < 1e-5
    torch.testing.assert_close(
        regions.boxes[0], torch.tensor([10 / 40, 4 / 20, 18 / 40, 12 / 20]), atol=1e-6, rtol=0
    )
    assert regions.labels.objects.tolist() == [2, 2]


def test_the_margin_shows_what_is_around_a_box_and_grey_outside_of_the_image(tmp_path):
    extractor = make(tmp_path, [[10, 4, 8, 8], [0, 0, 8, 8]], size=8, margin=0.5)
    image = draw()
    image[:, :, :10] = 255
    (regions,) = extractor.extract([image], ['drawing'])
    red, corner = regions.features.view(2, 3, 8, 8)
    # A cell is 2 pixels wide: two of them left of the box, in white.
    assert (red[:, :, 0] == 1).all() and (red[1, 2:6, 2:6] < 0).all()
    assert (corner[:, 0] == 0).all() and (corner[:, :, 0] == 0).all()
    assert (corner[:, 3:6, 3:6] == 1).all()


def test_an_image_without_boxes_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no box of the image 'other'"):
        make(tmp_path, [[0, 0, 8, 8]]).extract([draw()], ['other'])
