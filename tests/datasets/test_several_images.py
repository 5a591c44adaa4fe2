"""Transforms of samples with several images."""

import cv2
import numpy as np
import pytest
import torch

from xmodal.datasets import stack_images
from xmodal.datasets.transforms import ForEachImage, PackImageText, SplitImage


@pytest.fixture
def paths(tmp_path):
    """Three pictures: black, grey and white; the last is larger."""
    files = []
    for number, side in enumerate((16, 16, 24)):
        files.append(str(tmp_path / f'{number}.png'))
        cv2.imwrite(files[-1], np.full((side, side, 3), 100 * number, np.uint8))
    return files


def start(paths):
    return {'img_path': paths[0], 'img_paths': paths, 'text': 'a', 'image_id': 0, 'sample_index': 0}


def test_each_image_is_loaded_and_transformed_in_order(paths):
    transform = ForEachImage([dict(type='LoadImage'), dict(type='ResizeImage', size=8)])
    found = transform(start(paths))
    assert found['img'].shape == (3, 3, 8, 8)
    assert found['img'].float().mean((1, 2, 3)).tolist() == [0, 100, 200]
    assert found['img_path'] == paths[0]


def test_each_image_is_augmented_alone(paths):
    def draw(results):
        return {**results, 'img': torch.rand(3, 2, 2)}

    found = ForEachImage([draw])(start(paths))
    assert not torch.equal(found['img'][0], found['img'][1])


def test_images_of_different_sizes_are_an_error(paths):
    with pytest.raises(ValueError, match=r'\(3, 16, 16\), \(3, 24, 24\).*or ResizeImage'):
        ForEachImage([dict(type='LoadImage')])(start(paths))


def test_several_images_a_sample_make_one_batch(paths):
    transform = ForEachImage([dict(type='LoadImage')])
    samples = [PackImageText()(transform(start(paths[:2]))) for _ in range(4)]
    assert stack_images(samples)['inputs'].shape == (4, 2, 3, 16, 16)


@pytest.mark.parametrize(
    ('parts', 'share', 'starts', 'width'),
    [(2, 0.5, [0, 200], 200), (3, 0.25, [0, 150, 300], 100), (2, 0.625, [0, 150], 250)],
)
def test_windows_stand_evenly_from_edge_to_edge(parts, share, starts, width):
    image = torch.arange(400).expand(3, 10, 400)
    found = SplitImage(parts, share)({'img': image})['img']
    assert found.shape == (parts, 3, 10, width)
    for window, first in zip(found, starts, strict=True):
        assert window[0, 0].tolist() == list(range(first, first + width))
