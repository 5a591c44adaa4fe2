"""Pre-trained weights of ALBEF, against a literal implementation with transformers and timm."""

import sys

import pytest
import torch
from mmengine.config import Config
from tiny_albef import WORDS, TinyAlbef, write_config

from tools.model_converters import albef
from xmodal import converters
from xmodal.registry import MODELS


@pytest.fixture
def source():
    torch.manual_seed(0)
    return TinyAlbef().eval()


@pytest.fixture
def config_file(tmp_path):
    """The model of the preset at the tiny size."""
    return write_config('albef_4m', tmp_path)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', ['albef.py', *map(str, arguments)])
    albef.main()


@torch.no_grad()
@pytest.mark.parametrize('wrapped', [True, False])
def test_converted_weights_compute_what_albef_computes(
    source, config_file, tmp_path, monkeypatch, capsys, wrapped
):
    weights = source.albef_state_dict()
    weights |= {'temp': torch.tensor(0.05), 'text_queue': torch.zeros(8, 4)}
    if not wrapped:  # the fine-tuned files: no 'bert.'
        weights = {name.replace('bert.', ''): value for name, value in weights.items()}
    torch.save({'model': weights} if wrapped else weights, tmp_path / 'ALBEF.pth')
    out = tmp_path / 'new' / 'out.pth'
    run(monkeypatch, tmp_path / 'ALBEF.pth', out, '--config', config_file)
    report = capsys.readouterr().out
    assert 'not used, no such name in the model: 1\n  text_queue' in report

    model = MODELS.build(Config.fromfile(config_file).model).eval()
    checkpoint = torch.load(out, weights_only=True)
    keys = model.load_state_dict(checkpoint['state_dict'], strict=False)
    assert not keys.unexpected_keys
    # The tiny ALBEF has no weights for these; the teacher was copied.
    assert all(name.startswith(('heads.mlm', 'teacher.module.mlm')) for name in keys.missing_keys)
    images, input_ids = torch.randn(3, 3, 24, 24), torch.randint(5, WORDS, (3, 6))
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 5 + [0]])
    expected = source(images, input_ids, mask)
    image, text = model.encode_image(images), model.encode_text(input_ids, mask.bool())
    fused = model.fuse(image.tokens, text.tokens)
    actual = image.embedding, text.embedding, model.heads['itm'](fused.text_tokens)
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    assert model.heads['itc'].temperature().item() == pytest.approx(0.05)
    teacher = model.teacher.module['backbone'].image_proj.weight
    assert torch.equal(teacher, model.backbone.image_proj.weight)


def test_chosen_blocks_are_renumbered_in_order():
    assert converters.albef.rename('visual_encoder.blocks.4.norm1.weight', [0, 2, 4]) == (
        'backbone.image_encoder.vit.blocks.2.norm1.weight'
    )
    assert converters.albef.rename('visual_encoder.blocks.3.norm1.weight', [0, 2, 4]) is None


def test_a_file_of_another_model_is_an_error(config_file, tmp_path, monkeypatch):
    torch.save({'conv.weight': torch.zeros(1)}, tmp_path / 'other.pth')
    with pytest.raises(ValueError, match='is this a file of ALBEF'):
        run(monkeypatch, tmp_path / 'other.pth', tmp_path / 'out.pth', '--config', config_file)
    assert not (tmp_path / 'out.pth').exists()


def test_an_existing_file_is_not_overwritten(config_file, tmp_path, monkeypatch):
    (tmp_path / 'out.pth').write_text('mine')
    with pytest.raises(FileExistsError, match='out=.* already exists'):
        run(monkeypatch, 'any.pth', tmp_path / 'out.pth', '--config', config_file)
