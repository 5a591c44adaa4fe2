"""Images of the size that a model takes."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import ConfigDict
from PIL import Image

from xmodal.apis.preprocessing import image_pipeline
from xmodal.registry import TRANSFORMS


@pytest.mark.parametrize(('size', 'expected'), [(12, (12, 12)), ([8, 20], (8, 20))])
def test_an_image_is_resized_to_a_square_or_to_height_and_width(size, expected):
    pixels = np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)
    resize = TRANSFORMS.build(dict(type='ResizeImage', size=size))
    actual = resize(dict(img=torch.from_numpy(pixels).permute(2, 0, 1)))['img']
    height, width = expected
    reference = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
    assert actual.shape == (3, *expected)
    difference = actual.permute(1, 2, 0).int() - torch.from_numpy(np.array(reference)).int()
    assert difference.abs().max() <= 1


def test_an_inferencer_resizes_images_to_the_rectangle_of_an_encoder():
    dataset = ConfigDict(pipeline=[dict(type='LoadImage'), dict(type='PackImageText')])
    model = SimpleNamespace(image_encoder=SimpleNamespace(image_size=(8, 20)))
    _, resize, _ = image_pipeline(dataset, model).transforms
    assert resize(dict(img=torch.zeros(3, 9, 9, dtype=torch.uint8)))['img'].shape == (3, 8, 20)
