"""Feature maps of timm's models, and weights that other packages have of them."""

import pytest
import timm
import torch

from xmodal.models.backbones import GridExtractor, TimmGrid
from xmodal.registry import MODELS

SMALL = dict(  # a model of each layout of features: (B, F, h, w), (B, h, w, F), (B, 1 + M, F)
    convnext=('test_convnext', 64, {}),
    efficientnet=('test_efficientnet', 64, {}),
    vit=('test_vit', 64, dict(img_size=64)),
)


@pytest.mark.parametrize('name', SMALL)
def test_cells_are_those_of_timms_own_feature_map(name):
    arch, size, overrides = SMALL[name]
    torch.manual_seed(0)
    grid = TimmGrid(arch, size, **overrides).eval()
    images = torch.randn(2, 3, size, size)
    with torch.no_grad():
        cells = grid(images)
        (expected,) = grid.model.forward_intermediates(
            images, indices=[-1], norm=True, intermediates_only=True
        )
    if name == 'efficientnet':  # its last stage is before the head's convolution
        assert cells.shape == (2, expected.shape[2] * expected.shape[3], grid.model.num_features)
        return
    rows, columns = expected.shape[2:]
    assert cells.shape == (2, rows * columns, grid.feature_dims)
    for row in range(rows):
        for column in range(columns):
            torch.testing.assert_close(
                cells[:, row * columns + column], expected[:, :, row, column]
            )


def test_a_stage_has_its_own_width_and_grid():
    grid = TimmGrid('test_convnext', 64, stage=1).eval()
    info = grid.model.feature_info[1]
    with torch.no_grad():
        cells = grid(torch.randn(1, 3, 64, 64))
    assert cells.shape == (1, (64 // info['reduction']) ** 2, info['num_chs'])
    assert grid.feature_dims == info['num_chs']


@pytest.fixture
def weights(tmp_path):
    """Random weights of a whole small model under names of another package, as a file."""
    torch.manual_seed(1)
    model = timm.create_model('test_efficientnet')
    renamed = {f'other.{i}': x for i, x in enumerate(model.state_dict().values())}
    torch.save(renamed, tmp_path / 'w.pth')
    return tmp_path / 'w.pth', model


def test_weights_under_other_names_load_in_their_order(weights):
    file, source = weights
    grid = TimmGrid('test_efficientnet', 64, pretrained=str(file))
    grid.init_weights()
    known = source.state_dict()
    assert len(grid.model.state_dict()) > 10
    for name, x in grid.model.state_dict().items():
        torch.testing.assert_close(x, known[name])


def test_weights_of_another_architecture_say_what_fitted(weights):
    grid = TimmGrid('test_convnext', 64, pretrained=str(weights[0]))
    with pytest.raises(ValueError, match=r'w\.pth.*0 fit by name.*in their order'):
        grid.init_weights()


def test_a_file_that_is_no_weights_is_named(tmp_path):
    file = tmp_path / 'page.pth'
    file.write_text('<html>')
    with pytest.raises(FileNotFoundError, match=r'page\.pth'):
        TimmGrid('test_convnext', 64, pretrained=str(file)).init_weights()


def test_wrong_names_and_stages_are_errors():
    with pytest.raises(ValueError, match="arch='resnet_1000' is no model of timm"):
        TimmGrid('resnet_1000', 64)
    with pytest.raises(ValueError, match=r"stage=9.*'test_convnext' has 4 stages"):
        TimmGrid('test_convnext', 64, stage=9)


@pytest.mark.parametrize(
    'arch', ['volo_d1_224', 'pit_ti_224', 'coat_lite_tiny', 'crossvit_tiny_240']
)
def test_class_tokens_that_timm_does_not_tell_from_cells_are_refused(arch):
    """They were cells, or all of them; of CrossViT the first step failed."""
    with pytest.raises(ValueError, match=rf"features of '{arch}' have class tokens .*stage=-1"):
        TimmGrid(arch, timm.get_pretrained_cfg(arch).input_size[-1])


def test_a_stage_of_such_a_model_is_a_grid():
    grid = TimmGrid('pit_ti_224', 224, stage=-1).eval()
    with torch.no_grad():
        assert grid(torch.randn(1, 3, 224, 224)).shape == (1, 7**2, 256)


def test_the_extractor_normalises_as_the_weights_expect_and_gives_cells_as_boxes():
    torch.manual_seed(0)
    extractor = MODELS.build(
        dict(type='GridExtractor', arch='test_convnext', image_size=64, pretrained=False)
    )
    assert isinstance(extractor, GridExtractor) and not extractor.training
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    features, boxes = extractor(images)
    config = timm.get_pretrained_cfg('test_convnext')
    pixels = images.float() / 255
    for channel in range(3):
        pixels[:, channel] -= config.mean[channel]
        pixels[:, channel] /= config.std[channel]
    with torch.no_grad():
        expected = extractor.model.forward_features(pixels)
    torch.testing.assert_close(features, expected.flatten(2).transpose(1, 2))
    side = expected.shape[-1]
    for row in range(side):
        for column in range(side):
            x1, y1, x2, y2 = boxes[row * side + column].tolist()
            assert [x1 * side, y1 * side] == pytest.approx([column, row], abs=1e-5)
            assert [x2 * side, y2 * side] == pytest.approx([column + 1, row + 1], abs=1e-5)
