"""Objects cropped from images."""

import json

import numpy as np
import pytest
import torch
from mmengine.config import Config

from xmodal.datasets import InstanceDataset
from xmodal.datasets.transforms import CropObject

TAGS = Config.fromfile('configs/acerpe/encoder_shapes.py').tags


def read(world, tags=TAGS, **options):
    return InstanceDataset('coco/instances_train.json', tags, data_root=str(world), **options)


def test_a_sample_is_an_object_with_its_category_and_attributes(tiny_world):
    content = json.loads((tiny_world / 'coco/instances_train.json').read_text())
    names = {category['id']: category['name'] for category in content['categories']}
    dataset = read(tiny_world)
    assert len(dataset) == len(content['annotations'])
    for index in (0, 7, len(dataset) - 1):
        annotation, sample = content['annotations'][index], dataset[index]
        assert sample['box'] == annotation['bbox']
        assert sample['image_id'] == annotation['image_id']
        tags = [TAGS[tag_id] for tag_id in sample['tags']]
        assert tags == [names[annotation['category_id']], *annotation['attributes']]


def test_a_tag_that_the_config_does_not_have_is_named(tiny_world):
    with pytest.raises(ValueError, match=r'instances_train.json(.|\n)*disc.*not in dataset.tags'):
        read(tiny_world, [tag for tag in TAGS if tag != 'disc'])


@pytest.mark.parametrize('box', [[1, 2, -3, 4], [1, float('nan'), 3, 4]])
def test_an_invalid_box_is_named(tmp_path, box):
    content = {
        'images': [{'id': 1, 'file_name': '1.png'}],
        'categories': [{'id': 1, 'name': 'disc'}],
        'annotations': [{'image_id': 1, 'category_id': 1, 'bbox': box}],
    }
    (tmp_path / 'objects.json').write_text(json.dumps(content))
    with pytest.raises(
        ValueError, match=r'objects\.json(.|\n)*box of annotation 0 is .*expected x'
    ):
        InstanceDataset('objects.json', ['disc'], data_root=str(tmp_path))


def test_a_window_is_centred_on_the_box():
    image = torch.arange(3 * 20 * 30).view(3, 20, 30).remainder(251).to(torch.uint8)
    crop = CropObject(size=6, shift=0)
    window = crop.transform({'img': image, 'box': [10, 4, 8, 6]})['img']  # centre (14, 7)
    assert window.equal(image[:, 4:10, 11:17]) and window.dtype == torch.uint8


def test_beyond_the_edges_the_outermost_pixels_are_repeated():
    image = torch.randint(0, 256, (3, 20, 20), dtype=torch.uint8)
    window = CropObject(size=12, shift=0).transform({'img': image, 'box': [0, 15, 4, 5]})['img']
    padded = np.pad(image.numpy(), [(0, 0), (12, 12), (12, 12)], mode='edge')
    left, top = round(2 - 6) + 12, round(17.5 - 6) + 12
    assert np.array_equal(window.numpy(), padded[:, top : top + 12, left : left + 12])


def test_windows_move_by_at_most_the_shift():
    image = torch.arange(40).repeat(3, 40, 1).to(torch.uint8)  # a pixel's value is its column
    crop = CropObject(size=8, shift=5)
    starts = {
        int(crop.transform({'img': image, 'box': [18, 18, 4, 4]})['img'][0, 0, 0])
        for _ in range(300)
    }
    assert starts == set(range(11, 22))  # 20 - 4, plus or minus 5
