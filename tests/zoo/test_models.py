"""Models of the zoo are built, loaded and converted."""

import argparse
import json
import sys

import pytest
import torch
from mmengine.config import Config
from safetensors.torch import save_file

import xmodal
from tools import test as test_tool
from tools.analysis.get_params import replace_files
from xmodal.apis import checkpoint_of, get_model, models
from xmodal.engine.launch import read_config
from xmodal.export import run as export_run
from xmodal.files import FileError
from xmodal.registry import MODELS
from xmodal.zoo import checkpoints, find_entry
from xmodal.zoo.metafile import CONFIGS, ModelEntry, read_entries

ENTRIES = read_entries(CONFIGS)
MINILM = dict(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)


def test_models_build_without_their_files(pytestconfig, tmp_path):
    """All with ``--all-trials``, else those with weights and some of the others."""
    built = set()
    for index, entry in enumerate(ENTRIES):
        is_tried = pytestconfig.getoption('--all-trials') or index % 24 == 0
        if not (is_tried or entry.converter):
            continue
        model = read_config(str(entry.config_file)).model
        key = json.dumps(model.to_dict(), sort_keys=True, default=str)
        if key in built:
            continue
        built.add(key)
        text = model.get('backbone', model).get('text_encoder', {})
        if 'minilm' in str(text.get('config')):
            text.config = MINILM
        list(replace_files(model, argparse.Namespace(vocab_size=50, answers=None), tmp_path))
        with torch.device('meta'):
            MODELS.build(model)
    assert len(built) > 10


@pytest.fixture
def tiny_albef(monkeypatch, tmp_path):
    """A file of a tiny ALBEF, its config, and an entry of the zoo for both."""
    sys.path.append('tests/tools')
    from tiny_albef import TinyAlbef, write_config

    monkeypatch.setenv('XMODAL_HOME', str(tmp_path / 'cache'))
    torch.manual_seed(0)
    source = TinyAlbef().eval()
    weights = source.albef_state_dict() | {'temp': torch.tensor(0.05)}
    config = write_config('retrieval_coco_albef', tmp_path)
    torch.save({'model': weights}, tmp_path / 'mscoco.pth')
    entry = ModelEntry('tiny', 'tiny', str(config), 'retrieval', 'ALBEF', '', converter='albef')
    return source, tmp_path / 'mscoco.pth', Config.fromfile(config), entry


def test_a_file_of_others_is_converted_once(tiny_albef):
    source, file, config, entry = tiny_albef
    converted = checkpoints.find_checkpoint(entry, config, file)
    model = MODELS.build(config.model).eval()
    state = torch.load(converted, weights_only=True)['state_dict']
    model.load_state_dict(state, strict=False)
    images, input_ids = torch.randn(2, 3, 24, 24), torch.randint(5, 40, (2, 6))
    mask = torch.ones(2, 6, dtype=torch.long)
    with torch.no_grad():
        image, text, _ = source(images, input_ids, mask)
        torch.testing.assert_close(model.encode_image(images).embedding, image)
        torch.testing.assert_close(model.encode_text(input_ids, mask.bool()).embedding, text)

    own = file.with_name('epoch_5.pth')  # of a run that fine-tuned the model
    torch.save({'meta': {}, 'state_dict': model.state_dict()}, own)
    assert checkpoints.find_checkpoint(entry, config, own) == own

    before = converted.stat().st_mtime_ns
    assert checkpoints.find_checkpoint(entry, config, file) == converted
    assert converted.stat().st_mtime_ns == before
    config.model.backbone.proj_dims = 4  # another model is another conversion
    with pytest.raises(ValueError, match='has the shape'):
        checkpoints.find_checkpoint(entry, config, file)


def test_an_export_by_name_takes_the_file_that_is_given(tiny_albef, monkeypatch):
    source, file, _, entry = tiny_albef
    for module in (models, export_run):
        monkeypatch.setattr(module, 'find_entry', lambda name: entry)
    exported = export_run.read_run('tiny', file)  # which has no weights to download
    weight = exported.model.backbone.image_proj.weight
    assert torch.equal(weight, source.vision_proj.weight) and exported.card == {}


def test_a_file_of_safetensors_is_converted_as_others_are(tiny_albef, tmp_path):
    _, _, config, entry = tiny_albef
    save_file({'lxmert.pooler.dense.weight': torch.zeros(2, 2)}, tmp_path / 'model.safetensors')
    with pytest.raises(FileError, match='ALBEF'):
        checkpoints.find_checkpoint(entry, config, tmp_path / 'model.safetensors')


def test_a_file_with_code_is_not_run(tiny_albef):
    _, file, config, entry = tiny_albef
    torch.save({'model': {'x': argparse.Namespace(a=1)}}, file)
    with pytest.raises(ValueError, match='holds a argparse.Namespace beside its tensors'):
        checkpoints.find_checkpoint(entry, config, file)


def test_random_weights_need_no_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    model = get_model('acerpe-shapes', pretrained=False)
    assert type(model).__name__ == 'AlbefPretrainer' and not model.training
    trained = get_model('acerpe-shapes')
    ours, theirs = (m.backbone.image_proj.weight for m in (model, trained))
    assert not torch.allclose(ours, theirs)


def test_tools_take_names_as_checkpoints(tmp_path, monkeypatch):
    folder = find_entry('acerpe-shapes')
    assert checkpoint_of('acerpe-shapes').name == 'model.safetensors' and folder.is_shipped
    assert checkpoint_of('no/file.pth') == 'no/file.pth'
    monkeypatch.setattr(sys, 'argv', ['test.py', 'configs/acerpe/pretrain_4m.py'])
    with pytest.raises(ValueError, match='which checkpoint.*pretrain_4m.py CHECKPOINT'):
        test_tool.main()
    (tmp_path / 'config.py').write_text('')
    monkeypatch.setattr(sys, 'argv', ['test.py', str(tmp_path)])
    with pytest.raises(ValueError, match=f'is the folder of a model.*CONFIG {tmp_path}'):
        test_tool.main()
    monkeypatch.setattr(sys, 'argv', ['test.py', 'acerpe-shape'])
    with pytest.raises(ValueError, match="no model 'acerpe-shape'.* did you mean acerpe-shapes"):
        test_tool.main()


def test_the_package_offers_the_models():
    assert xmodal.get_model is get_model
    assert xmodal.Inferencer.__module__ == 'xmodal.apis.inference'
