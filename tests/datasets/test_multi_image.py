"""Transforms of samples with several images, and of several views of one image."""

import cv2
import numpy as np
import pytest
import torch

from xmodal.datasets import ClassFolderDataset, stack_images
from xmodal.datasets.transforms import (
    ForEachImage,
    PackImageText,
    SplitImage,
    SplitRegions,
    TwoViews,
)
from xmodal.structures import ObjectLabels, Regions


@pytest.fixture
def paths(tmp_path):
    """Three images: black, grey and light; the last is larger."""
    files = []
    for index, side in enumerate((16, 16, 24)):
        files.append(str(tmp_path / f'{index}.png'))
        cv2.imwrite(files[-1], np.full((side, side, 3), 100 * index, np.uint8))
    return files


def initial_results(paths):
    return {'img_path': paths[0], 'img_paths': paths, 'text': 'a', 'image_id': 0, 'sample_index': 0}


def test_each_image_is_loaded_and_transformed_in_order(paths):
    transform = ForEachImage([dict(type='LoadImage'), dict(type='ResizeImage', size=8)])
    results = transform(initial_results(paths))
    assert results['img'].shape == (3, 3, 8, 8)
    assert results['img'].float().mean((1, 2, 3)).tolist() == [0, 100, 200]
    assert results['img_path'] == paths[0]


def test_each_image_is_augmented_differently(paths):
    def add_noise(results):
        return {**results, 'img': torch.rand(3, 2, 2)}

    results = ForEachImage([add_noise])(initial_results(paths))
    assert not torch.equal(results['img'][0], results['img'][1])


def test_images_of_different_sizes_are_an_error(paths):
    with pytest.raises(ValueError, match=r'\(3, 16, 16\), \(3, 24, 24\).*or ResizeImage'):
        ForEachImage([dict(type='LoadImage')])(initial_results(paths))


def test_samples_of_several_images_are_stacked_to_a_batch(paths):
    transform = ForEachImage([dict(type='LoadImage')])
    samples = [PackImageText()(transform(initial_results(paths[:2]))) for _ in range(4)]
    assert stack_images(samples)['inputs'].shape == (4, 2, 3, 16, 16)


@pytest.mark.parametrize(
    ('parts', 'share', 'starts', 'width'),
    [(2, 0.5, [0, 200], 200), (3, 0.25, [0, 150, 300], 100), (2, 0.625, [0, 150], 250)],
)
def test_windows_are_evenly_spaced_from_edge_to_edge(parts, share, starts, width):
    image = torch.arange(400).expand(3, 10, 400)
    windows = SplitImage(parts, share)({'img': image})['img']
    assert windows.shape == (parts, 3, 10, width)
    for window, first in zip(windows, starts, strict=True):
        assert window[0, 0].tolist() == list(range(first, first + width))


@pytest.mark.parametrize('width', [1, 2])
def test_windows_of_a_narrow_image_have_a_pixel(width):
    windows = SplitImage(3, 0.25)({'img': torch.arange(width).expand(3, 10, width)})['img']
    assert windows.shape == (3, 3, 10, 1)
    assert windows[0, 0, 0] == 0 and windows[2, 0, 0] == width - 1


def test_regions_go_to_the_window_of_their_centre():
    # Three windows of 100 pixels in an image of 400; the third region lies between two of them.
    pixels = torch.tensor(
        [
            [0.0, 0, 100, 50],
            [150, 10, 200, 20],
            [101, 0, 149, 9],
            [320, 0, 400, 50],
            [240, 5, 260, 6],
        ]
    )
    boxes = pixels / torch.tensor([400.0, 50, 400, 50])
    labels = ObjectLabels(torch.arange(5), torch.ones(5), torch.arange(5), torch.ones(5))
    regions = Regions(torch.arange(5.0)[:, None], torch.ones(5, dtype=torch.bool), boxes, labels)
    results = SplitRegions(3, 0.25)({'regions': regions, 'img_path': 'a.png'})['regions']
    assert [window.features.flatten().tolist() for window in results] == [[0], [1, 4], [3]]
    assert [window.labels.objects.tolist() for window in results] == [[0], [1, 4], [3]]
    expected = torch.tensor([[0, 0.2, 0.5, 0.4], [0.9, 0.1, 1.1, 0.12]])
    torch.testing.assert_close(results[1].boxes, expected)
    assert all(len(window.attention_mask) == len(window.boxes) for window in results)
    torch.testing.assert_close(boxes, pixels / torch.tensor([400.0, 50, 400, 50]))  # not changed
    of_list = {'regions': [regions], 'img_path': 'a.png'}  # a sample with a list of one image
    window = SplitRegions(3, 0.25, only=2)(of_list)['regions']
    assert window.features.flatten().tolist() == [3]


def test_a_window_without_a_region_is_an_error():
    box = torch.tensor([[0.0, 0.0, 0.1, 1.0]])
    regions = Regions(torch.ones(1, 2), torch.ones(1, dtype=torch.bool), box)
    with pytest.raises(ValueError, match='a.png: window 1 of 3 has no region'):
        SplitRegions(3, 0.25)({'regions': regions, 'img_path': 'a.png'})
    with pytest.raises(ValueError, match='a.png: its regions have no boxes'):
        SplitRegions(3, 0.25)({'regions': regions._replace(boxes=None), 'img_path': 'a.png'})


CROP = dict(type='AlbefAugment', size=16, scale=(0.2, 0.5), num_ops=0)


def test_the_two_views_are_different_crops_of_the_image():
    image = torch.arange(3 * 40 * 40).view(3, 40, 40).remainder(251).to(torch.uint8)
    results = {'img': image, 'text': 'kept'}
    views = TwoViews([CROP])(dict(results))
    assert views['img'].shape == (2, 3, 16, 16) and views['text'] == 'kept'
    assert not torch.equal(*views['img'])
    unchanged = TwoViews([])(dict(results))['img']
    assert torch.equal(unchanged[0], image) and torch.equal(unchanged[1], image)


def test_the_view_of_the_teacher_may_have_transforms_of_its_own():
    image = torch.full((3, 8, 8), 100, dtype=torch.uint8)
    jitter = dict(type='ColorJitter', brightness=0.5, contrast=0.0, saturation=0.0)
    views = TwoViews([], [jitter])({'img': image})['img']
    assert torch.equal(views[0], image) and views[1].unique().numel() == 1
    assert 50 <= int(views[1, 0, 0, 0]) <= 150 and not torch.equal(views[1], image)


def test_the_two_views_follow_from_seed_epoch_and_index(tmp_path):
    (tmp_path / 'a').mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    cv2.imwrite(str(tmp_path / 'a' / '0.png'), pixels)
    pipeline = [dict(type='LoadImage'), dict(type='TwoViews', transforms=[CROP])]
    pipeline.append(dict(type='PackImageText'))
    dataset = ClassFolderDataset(str(tmp_path), pipeline=pipeline, test_mode=False)
    first, repeated, other = (dataset[0, epoch]['inputs'] for epoch in (0, 0, 1))
    assert torch.equal(first, repeated) and not torch.equal(first, other)
    assert stack_images([dataset[0], dataset[0]])['inputs'].shape == (2, 2, 3, 16, 16)
