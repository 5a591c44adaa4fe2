"""Several image models as one extractor."""

import pytest
import torch

from xmodal.models.backbones import GridExtractor
from xmodal.registry import MODELS

SIZE = 64
RANDOM = dict(pretrained=False)


def ensemble(*members):
    torch.manual_seed(0)
    return MODELS.build(dict(type='GridEnsemble', image_size=SIZE, members=list(members)))


def test_each_cell_has_the_features_of_all_members():
    built = ensemble(dict(arch='test_convnext', **RANDOM), dict(arch='test_efficientnet', **RANDOM))
    torch.manual_seed(0)
    archs = ('test_convnext', 'test_efficientnet')
    members = [GridExtractor(arch, SIZE, pretrained=False) for arch in archs]
    images = torch.randint(0, 256, (2, 3, SIZE, SIZE), dtype=torch.uint8)
    found = built.extract(images, ['a', 'b'])
    first, second = (member(images) for member in members)
    assert built.feature_dims == first[0].shape[-1] + second[0].shape[-1]
    for row, regions in enumerate(found):
        width = first[0].shape[-1]
        torch.testing.assert_close(regions.features[:, :width], first[0][row])
        torch.testing.assert_close(regions.features[:, width:], second[0][row])
        torch.testing.assert_close(regions.boxes, first[1])
        assert regions.attention_mask.all()


def test_members_must_have_the_same_cells():
    with pytest.raises(ValueError, match='64 of test_convnext, 4 of test_efficientnet'):
        ensemble(
            dict(arch='test_convnext', stage=1, **RANDOM), dict(arch='test_efficientnet', **RANDOM)
        )
