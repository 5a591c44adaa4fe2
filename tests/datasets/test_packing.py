"""What a pipeline says of transforms that give it something else than results with an image."""

import numpy as np
import pytest
import torch

from xmodal.datasets.transforms import PackImageText, build_pipeline
from xmodal.errors import ConfigError

RESULTS = {'img_path': 'a.png', 'text': 'a', 'image_id': 0, 'sample_index': 0}


@pytest.mark.parametrize(
    ('image', 'found'),
    [
        (np.zeros((8, 8, 3), np.uint8), r'img is a ndarray uint8 of shape \(8, 8, 3\)'),
        (torch.zeros(3, 8, 8), r'img is a Tensor torch.float32 of shape \(3, 8, 8\)'),
        (torch.zeros(8, 8, 3, dtype=torch.uint8), r'img is a Tensor torch.uint8 of shape \(8, 8'),
    ],
)
def test_an_image_of_another_kind_is_named_before_the_batch(image, found):
    with pytest.raises(ConfigError, match=rf'{found}.*expected a uint8 tensor \(…, 3, H, W\)'):
        PackImageText()({**RESULTS, 'img': image})


@pytest.mark.parametrize('shape', [(3, 8, 6), (2, 3, 8, 6)])
def test_one_image_and_several_views_are_packed_as_they_are(shape):
    image = torch.randint(256, shape, dtype=torch.uint8)
    assert PackImageText()({**RESULTS, 'img': image})['inputs'] is image


class Forgetful:
    def __call__(self, results):
        results['img'] = None


def forget(results):
    results['img'] = None


@pytest.mark.parametrize(('transform', 'name'), [(Forgetful(), 'Forgetful'), (forget, 'forget')])
def test_a_transform_that_returns_nothing_is_named(transform, name):
    pipeline = build_pipeline([transform, dict(type='PackImageText')])
    with pytest.raises(ConfigError, match=f'^{name} of a pipeline returns None, expected the res'):
        pipeline(dict(RESULTS))


@pytest.mark.parametrize('change', [{'sample_index': None}, {'image_id': 'a.png'}])
def test_what_a_data_set_does_not_give_of_a_sample_is_named(change):
    (name, value), results = *change.items(), {**RESULTS, 'img': torch.zeros(3, 8, 8).byte()}
    results[name] = value
    with pytest.raises(ConfigError, match=rf'a sample has {name}={value!r}: get_data_info of a'):
        PackImageText()(results)
    del results[name]
    with pytest.raises(
        ConfigError, match=rf"a sample has no '{name}': get_data_info of a data set"
    ):
        PackImageText()(results)
    PackImageText()({**RESULTS, 'img': results['img'], name: np.int64(3)})
