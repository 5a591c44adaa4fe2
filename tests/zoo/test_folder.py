"""A model in a folder: written, read, and never run."""

import copy
import json
import os
import resource
from pathlib import Path
from types import SimpleNamespace

import cv2
import pytest
import torch
from mmengine.config import Config, ConfigDict
from transformers import BertConfig

from xmodal.apis import Inferencer, get_model, load_model, save_pretrained
from xmodal.engine.launch import read_config
from xmodal.errors import ConfigError
from xmodal.export.run import _describe, _of_entry, read_run
from xmodal.models.albef.model import AlbefModel
from xmodal.registry import MODELS
from xmodal.zoo import find_entry
from xmodal.zoo.card import write_card
from xmodal.zoo.folder import find_folder, read_folder
from xmodal.zoo.saving import _copy_extractors, _copy_into, _make_portable


@pytest.fixture
def trained(tiny_config, tmp_path):
    """A tiny model with momentum teacher and queue, and the images of its world."""
    torch.manual_seed(3)
    model = MODELS.build(tiny_config.model).eval()
    torch.save(model.state_dict(), tmp_path / 'weights.pth')
    root = tiny_config.test_dataloader.dataset.data_root
    images = sorted(str(path) for path in (tmp_path / root).rglob('images/test/**/*.png'))[:3]
    return tiny_config, model, images


TEXTS = ['a red ring', 'a blue disc above a green square']


def test_a_folder_has_the_scores_of_the_run_to_the_last_bit(trained, tmp_path, monkeypatch):
    config, model, images = trained
    inferencer = Inferencer(config, tmp_path / 'weights.pth')
    expected = inferencer.similarity(images, TEXTS), inferencer.match(images, TEXTS)
    before = copy.deepcopy(config.to_dict())
    folder = save_pretrained(model, config, tmp_path / 'model')
    assert config.to_dict() == before  # it may train on
    names = {path.name for path in folder.iterdir()}
    assert names == {'config.py', 'model.safetensors', 'vocab.txt', 'README.md'}

    moved = folder.rename(tmp_path / 'moved')
    monkeypatch.chdir(tmp_path / 'moved')  # nothing is looked for beside it
    for name in (moved, '../moved'):
        again = Inferencer(name)
        assert torch.equal(again.similarity(images, TEXTS), expected[0])
        assert torch.equal(again.match(images, TEXTS), expected[1])
    # MMEngine and the tools read the same config.
    tokenizer = Config.fromfile(moved / 'config.py').model.data_preprocessor.tokenizer
    assert tokenizer.pretrained == f'{moved}/vocab.txt'
    again = load_model(str(moved / 'config.py'), moved / 'model.safetensors')
    assert again.teacher is None and len(again.queue.image_embeddings) == 0


def test_two_files_of_one_name_are_both_copied(tmp_path):
    copied = {}
    for name in ('a', 'b'):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'answers.json').write_text(name)
    folder = tmp_path / 'model'
    folder.mkdir()
    files = [tmp_path / name / 'answers.json' for name in 'aba']
    names = [_copy_into(folder, file, copied) for file in files]
    assert names == ['answers.json', 'answers_2.json', 'answers.json']
    assert [(folder / name).read_text() for name in names] == ['a', 'b', 'a']
    assert _copy_into(folder, folder / 'answers.json', {}) == 'answers.json'  # it is there


def test_a_copy_does_not_take_the_name_of_the_weights(tmp_path):
    file = tmp_path / 'model.safetensors'
    file.write_text('of an extractor')
    folder = tmp_path / 'model'
    folder.mkdir()
    copied = {}
    names = [_copy_into(folder, file, copied) for _ in range(2)]
    assert names == ['model_2.safetensors', 'model_2.safetensors']


def test_the_weights_of_an_extractor_are_copied_and_word_vectors_are_not(tmp_path):
    files = {name: tmp_path / name for name in ('detector.pth', 'glove.txt', 'vocab.txt')}
    for name, file in files.items():
        file.write_text(name)
    extractor = dict(type='DetectorExtractor', pretrained=str(files['detector.pth']))
    dataset = dict(pipeline=[dict(type='LoadRegions', store=[], extractor=extractor)])
    encoder = dict(word_vectors=str(files['glove.txt']), vocabulary=str(files['vocab.txt']))
    config = Config(dict(model=dict(text_encoder=encoder), test_dataloader=dict(dataset=dataset)))
    folder = tmp_path / 'model'
    folder.mkdir()
    copied = {}
    _make_portable(config.model, torch.nn.Module(), folder, copied)
    _copy_extractors(config.test_dataloader, folder, copied)
    assert sorted(path.name for path in folder.iterdir()) == ['detector.pth', 'vocab.txt']
    assert 'word_vectors' not in config.model.text_encoder


def test_half_the_bytes_give_nearly_the_same_scores(trained, tmp_path):
    config, model, images = trained
    inferencer = Inferencer(config, tmp_path / 'weights.pth')
    whole = save_pretrained(model, config, tmp_path / 'whole')
    half = save_pretrained(model, config, tmp_path / 'half', torch.float16)
    sizes = [(folder / 'model.safetensors').stat().st_size for folder in (half, whole)]
    assert sizes[0] < 0.6 * sizes[1]
    again = Inferencer(half)
    assert next(again.model.parameters()).dtype == torch.float32
    expected = inferencer.similarity(images, TEXTS)
    torch.testing.assert_close(again.similarity(images, TEXTS), expected, atol=5e-3, rtol=0)


def test_a_card_says_what_is_known(trained, tmp_path):
    config, model, _ = trained
    card = dict(
        description='About it.', metrics={'R@1': 12.345, 'rank': 2.0}, provenance=['Commit abc']
    )
    folder = save_pretrained(model, config, tmp_path / 'model', card=card | dict(license='mit'))
    text = (folder / 'README.md').read_text()
    assert text.startswith('---\nlibrary_name: xmodal\nlicense: mit\n')
    for part in ('About it.', '| R@1 | 12.35 |', '| rank | 2 |', '* Commit abc', f"'{folder}'"):
        assert part in text
    # A folder's weights keep their licence; that of one's own run is one's own choice.
    assert read_run(str(folder)).card == {'license': 'mit'}
    folder = save_pretrained(model, config, tmp_path / 'own', card=card)
    assert 'license' not in (folder / 'README.md').read_text()


def test_released_weights_keep_their_licence_and_other_models_have_no_example(tmp_path):
    assert _of_entry(find_entry('albef-4m'))['license'] == 'bsd-3-clause'
    assert _of_entry(find_entry('lxmert'))['license'] == 'mit'
    assert read_run('acerpe-shapes').card['license'] == 'apache-2.0'
    config = Config(dict(model=dict(type='AlbefVQA')))
    write_card(tmp_path / 'README.md', config, torch.nn.Linear(1, 1))
    assert 'similarity' not in (tmp_path / 'README.md').read_text()


def test_the_card_of_a_run_shows_its_training(trained, tmp_path):
    config, model, _ = trained
    run, folder = tmp_path / 'run', tmp_path / 'model'
    (run / '1/vis_data').mkdir(parents=True)
    rows = [{'step': i, 'loss': 9.0 - i, 'lr': 1e-3, 'base_lr': 1e-3, 'eta': i} for i in range(5)]
    log = ''.join(json.dumps(row) + '\n' for row in rows)
    (run / '1/vis_data/scalars.json').write_text(log)
    config.dump(run / 'tiny.py')
    torch.save({'state_dict': model.state_dict(), 'meta': {'epoch': 2}}, run / 'epoch_2.pth')
    (run / 'last_checkpoint').write_text(str(run / 'epoch_2.pth'))
    for time, tested, rsum in ((1, 2, 300), (2, 1, 200)):  # the later test is of another epoch
        (run / f'test/{time}/vis_data').mkdir(parents=True)
        metrics = {'rsum': rsum, 'ema/rsum': 9 * rsum}
        (run / f'test/{time}/{time}.json').write_text(json.dumps(metrics))
        config.load_from = str(run / f'epoch_{tested}.pth')
        config.dump(run / f'test/{time}/vis_data/config.py')
    broken = "_base_ = 'moved.py'"
    (run / 'test/0/vis_data').mkdir(parents=True)
    (run / 'test/0/0.json').write_text('{}')
    (run / 'test/0/vis_data/config.py').write_text(broken)  # earlier than the one that it takes
    exported = read_run(str(run))
    assert exported.card['metrics'] == {'rsum': 300}
    given = run / 'test/2/2.json'
    (given.parent / 'vis_data/config.py').write_text(broken)
    assert read_run(str(run), metrics_file=given).card['metrics'] == {'rsum': 200}
    axes = exported.card['figures']['Training'].axes
    drawn = {a.get_title('left'): a.lines[0].get_ydata() for a in axes if a.get_visible()}
    assert drawn.keys() == {'loss', 'lr'} and list(drawn['loss']) == [9, 8, 7, 6, 5]
    save_pretrained(exported.model, exported.config, folder, card=exported.card)
    assert '![Training](training.png)' in (folder / 'README.md').read_text()
    assert cv2.imread(str(folder / 'training.png')).std() > 0


def test_a_card_names_the_command_of_a_config_that_nobody_has_changed(tmp_path):
    config = read_config('configs/acerpe/pretrain_shapes.py')
    config.update(launcher='none', work_dir=str(tmp_path))  # as every command does
    file = tmp_path / 'epoch_1.pth'
    torch.save({'state_dict': {}, 'meta': {'epoch': 1, 'seed': 0}}, file)

    def card(changes):
        changed = copy.deepcopy(config)
        changed.merge_from_dict(changes)
        changed.dump(tmp_path / 'pretrain_shapes.py')
        return _describe(read_config(str(tmp_path / 'pretrain_shapes.py')), file)

    command = 'Command `python tools/train.py configs/acerpe/pretrain_shapes.py`'
    for same in ({}, {'resume': True, 'load_from': 'epoch_1.pth'}):
        shown = card(same)
        assert shown['provenance'] == ['Config `pretrain_shapes.py`, epoch 1, seed 0', command]
        assert 'ACE-RPE' in shown['description']
    for change in ({'model.heads.ace': None}, {'load_from': 'epoch_1.pth'}, {'added': 1}):
        provenance = ['Config `pretrain_shapes.py` (changed), epoch 1, seed 0']
        assert card(change) == {'provenance': provenance}


def test_a_run_whose_config_is_named_as_that_of_a_folder_is_a_run(trained, tmp_path):
    config, model, images = trained
    run = tmp_path / 'run'
    run.mkdir()
    config.dump(run / 'config.py')
    torch.save({'state_dict': model.state_dict(), 'meta': {'epoch': 1}}, run / 'epoch_1.pth')
    (run / 'last_checkpoint').write_text('epoch_1.pth')
    exported = read_run(str(run))
    assert exported.card['provenance'] == ['Config `config.py`, epoch 1, seed None']
    weights = model.state_dict()
    assert all(value.equal(weights[key]) for key, value in exported.model.state_dict().items())


def test_the_folder_of_a_run_names_its_last_checkpoint(trained, tmp_path):
    config, model, images = trained
    run = tmp_path / 'run'
    run.mkdir()
    config.dump(run / 'tiny.py')
    torch.save({'state_dict': model.state_dict()}, run / 'epoch_2.pth')
    other = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
    torch.save({'state_dict': other}, run / 'epoch_1.pth')
    (run / 'last_checkpoint').write_text('epoch_2.pth')
    expected = Inferencer(config, run / 'epoch_2.pth').similarity(images, TEXTS)
    assert torch.equal(Inferencer(str(run)).similarity(images, TEXTS), expected)
    former = Inferencer(run, run / 'epoch_1.pth')
    assert not any(parameter.any() for parameter in former.model.parameters())


@pytest.mark.parametrize(
    ('key', 'kind'), [('dataset.type', 'dataset'), ('collate_fn.type', 'function')]
)
def test_a_plug_in_that_nobody_has_imported_is_named(trained, tmp_path, key, kind):
    config, model, _ = trained
    config.merge_from_dict({f'test_dataloader.{key}': 'OwnPart'})
    config.test_dataloader.dataset.pop('max_words', None)
    folder = save_pretrained(model, config, tmp_path / 'model')
    with pytest.raises(ConfigError, match=f"type='OwnPart' is not a registered {kind}.* imported"):
        Inferencer(folder)
    with pytest.raises(ConfigError, match='of a folder has none: import the module first, or give'):
        Inferencer(folder)


class OwnModel(AlbefModel):
    """A plug-in that has no ``momentum`` and no ``queue_length``."""

    def __init__(self, data_preprocessor, backbone):
        super().__init__(data_preprocessor, backbone)
        self.make_teacher(None)
        self.queue = torch.nn.Linear(2, 3)  # of another kind


def test_a_model_without_a_key_of_momentum_is_exported_and_read_as_a_checkpoint(trained, tmp_path):
    config, *_ = trained
    parts = {key: config.model[key] for key in ('data_preprocessor', 'backbone')}
    config.model = ConfigDict(type='OwnModel', **parts)
    MODELS.register_module(module=OwnModel)
    try:
        model = MODELS.build(config.model)
        folder = save_pretrained(model, config, tmp_path / 'model')
        loaded = get_model(folder), load_model(config, folder)
    finally:
        MODELS.module_dict.pop('OwnModel')
    for again in loaded:
        for name, value in model.state_dict().items():
            assert torch.equal(again.state_dict()[name], value), name


def test_a_run_too_short_for_a_curve_is_exported_without(trained, tmp_path):
    config, model, _ = trained
    (tmp_path / '1/vis_data').mkdir(parents=True)
    (tmp_path / '1/vis_data/scalars.json').write_text('{"step": 1, "loss": 9.0}\n')
    config.dump(tmp_path / 'tiny.py')
    torch.save({'state_dict': model.state_dict(), 'meta': {'epoch': 1}}, tmp_path / 'epoch_1.pth')
    exported = read_run(str(tmp_path), tmp_path / 'epoch_1.pth')
    folder = save_pretrained(model, config, tmp_path / 'model', card=exported.card)
    assert 'training.png' not in (folder / 'README.md').read_text()


@pytest.mark.parametrize(
    ('line', 'message'),
    [
        ('import os', 'line 1 is no assignment'),
        ("model = print('x')", 'line 1 calls a function'),
        ('model = dict(a=[print(1)])', 'line 1 calls a function'),
        ('model = __import__', 'malformed node'),
        ("model = dict(type='subprocess.run')", "type='subprocess.run' is no component of xmodal"),
        ("model = [dict(a=dict(type='os.system'))]", "type='os.system' is no component of xmodal"),
        ("model = dict(type='xmodal.soak.process._run')", "_run' is no component of xmodal"),
        ("model = dict(type='xmodal.import_module')", "import_module' is no component of xmodal"),
        ("model = dict(type='GridExtractor', checkpoint_path='a')", 'has checkpoint_path, and the'),
        ("model = dict(type='ITCHead', _scope_='antigravity')", 'has _scope_, and the folder'),
        ("custom_imports = dict(imports=['x'])", 'has custom_imports'),
        ('model = dict(', 'was never closed'),
    ],
)
def test_the_config_of_a_stranger_is_read_not_run(tmp_path, line, message):
    (tmp_path / 'config.py').write_text(line)
    with pytest.raises(ConfigError, match=f'config.py.*{message}'):
        read_folder(tmp_path)


def test_values_of_a_config_are_those_that_python_reads(tmp_path):
    text = "a = dict(b=[1, -2.5, 'x'], c=(None, True), d={'e': dict()})\nf = '{{ fileDirname }}/g'"
    (tmp_path / 'config.py').write_text(text)
    config = read_folder(tmp_path)
    assert config.to_dict() == Config.fromfile(tmp_path / 'config.py').to_dict()
    assert config.f == f'{tmp_path}/g'


def test_the_path_of_a_folder_may_have_an_apostrophe(tmp_path):
    folder = tmp_path / "Anna's"
    folder.mkdir()
    (folder / 'config.py').write_text("a = dict(b=['{{ fileDirname }}/c'])")
    assert read_folder(folder).a.b == [f'{folder}/c']


def test_a_name_on_the_hub_is_fetched(trained, tmp_path, monkeypatch):
    config, model, images = trained
    folder = save_pretrained(model, config, tmp_path / 'snapshot')
    asked = []

    def download(name, allow_patterns):
        asked.append(name)
        if name == 'user/other':
            raise OSError('404 Client Error.\nmore')
        return str(tmp_path if name == 'user/empty' else folder)

    monkeypatch.setattr('huggingface_hub.snapshot_download', download)
    assert Inferencer('user/model').similarity(images, TEXTS).shape == (3, 2)
    with pytest.raises(FileNotFoundError, match="'user/other' .* the hub says: 404 Client Error"):
        find_folder('user/other')
    with pytest.raises(FileNotFoundError, match="'user/empty' on the hub has no config.py"):
        find_folder('user/empty')
    assert asked == ['user/model', 'user/other', 'user/empty']


def test_a_typing_error_in_a_path_does_not_ask_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'work_dirs/pretrain_shapes').mkdir(parents=True)
    message = "'work_dirs/pretrain_shape' does not exist, did you mean work_dirs/pretrain_shapes"
    with pytest.raises(FileNotFoundError, match=message):
        find_folder('work_dirs/pretrain_shape')


def test_a_hub_that_refuses_a_folder_is_one_sentence(tmp_path, monkeypatch):
    from xmodal.apis import push_to_hub

    def refuse(*_, **__):
        raise OSError('401 Unauthorized\nmore')

    monkeypatch.setattr('huggingface_hub.HfApi.create_repo', refuse)
    message = "'user/name' was not uploaded.* 401 Unauthorized .*hf auth"
    with pytest.raises(ConfigError, match=message):
        push_to_hub(tmp_path, 'user/name')


@pytest.fixture
def room_for():
    """Limits the size of a file, which fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_folder_is_written_whole_or_not_at_all(trained, tmp_path, room_for):
    config, model, _ = trained
    room_for(20_000)  # the config and the vocabulary, but not the weights
    with pytest.raises(OSError, match=f'File too large.*{tmp_path}/new/model'):
        save_pretrained(model, config, tmp_path / 'new/model')
    assert not list((tmp_path / 'new').iterdir())


def test_a_folder_and_its_files_are_as_open_as_any_others(trained, tmp_path):
    config, model, _ = trained
    former = os.umask(0o027)
    try:
        folder = save_pretrained(model, config, tmp_path / 'model')
    finally:
        os.umask(former)
    assert folder.stat().st_mode & 0o777 == 0o750
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o640}


def test_keys_of_older_versions_of_transformers_are_left_out():
    config = BertConfig(hidden_size=24, num_attention_heads=2, gradient_checkpointing=False, old=1)
    model = SimpleNamespace(text_encoder=SimpleNamespace(config=config))
    section = ConfigDict(text_encoder=dict(type='BertTextEncoder', config='bert-base-uncased'))
    _make_portable(section, model, Path(), {})
    kept = section.text_encoder.config
    assert kept['hidden_size'] == 24 and kept['model_type'] == 'bert'
    assert not kept.keys() - BertConfig().to_dict().keys()


def test_a_folder_is_pushed_whole(tmp_path, monkeypatch):
    from xmodal.apis import push_to_hub

    calls = []

    class Api:
        def __init__(self, **_):
            pass

        def create_repo(self, name, **options):
            calls.append((name, options))

        def upload_folder(self, repo_id, folder_path, commit_message):
            calls.append((repo_id, folder_path))
            return 'url'

    monkeypatch.setattr('huggingface_hub.HfApi', Api)
    assert push_to_hub(tmp_path, 'user/name', private=True) == 'url'
    assert calls == [
        ('user/name', {'private': True, 'exist_ok': True}),
        ('user/name', tmp_path),
    ]
