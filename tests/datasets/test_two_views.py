"""Two views of one image."""

import cv2
import numpy as np
import torch

from xmodal.datasets import ClassFolderDataset, stack_images
from xmodal.datasets.transforms import TwoViews

CROP = dict(type='AlbefAugment', size=16, scale=(0.2, 0.5), num_ops=0)


def test_the_views_are_drawn_apart_and_both_of_the_image():
    image = torch.arange(3 * 40 * 40).view(3, 40, 40).remainder(251).to(torch.uint8)
    results = {'img': image, 'text': 'kept'}
    found = TwoViews([CROP])(dict(results))
    assert found['img'].shape == (2, 3, 16, 16) and found['text'] == 'kept'
    assert not torch.equal(*found['img'])
    unchanged = TwoViews([])(dict(results))['img']
    assert torch.equal(unchanged[0], image) and torch.equal(unchanged[1], image)


def test_they_follow_from_seed_epoch_and_index(tmp_path):
    (tmp_path / 'a').mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    cv2.imwrite(str(tmp_path / 'a' / '0.png'), pixels)
    pipeline = [dict(type='LoadImage'), dict(type='TwoViews', transforms=[CROP])]
    pipeline.append(dict(type='PackImageText'))
    dataset = ClassFolderDataset(str(tmp_path), pipeline=pipeline, test_mode=False)
    one, again, other = (dataset[0, epoch]['inputs'] for epoch in (0, 0, 1))
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert stack_images([dataset[0], dataset[0]])['inputs'].shape == (2, 2, 3, 16, 16)
