"""Errors of what the user wrote are sentences; those of the package keep their traceback."""

import importlib
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from torch.utils.data import DataLoader

from xmodal.datasets.captions import AlbefJsonDataset
from xmodal.datasets.collate import stack_images
from xmodal.datasets.transforms import BrokenImageError
from xmodal.engine.errors import explain, run_or_explain
from xmodal.engine.keys import check_dataloader, check_keys, check_options
from xmodal.engine.launch import build_runner, read_config
from xmodal.engine.needed import check_needed
from xmodal.errors import ConfigError
from xmodal.registry import HOOKS, MODELS, register_all


@pytest.fixture
def here(tmp_path, monkeypatch, own_config_reader):
    """An empty working directory, where Python does not look for modules by itself."""
    monkeypatch.setattr(Config, '_file2dict', staticmethod(own_config_reader))  # it has the errors
    monkeypatch.chdir(tmp_path)
    kept = [path for path in sys.path if path not in ('', str(tmp_path))]
    monkeypatch.setattr(sys, 'path', kept)
    return tmp_path


def write(text, **modules):
    """Writes a config of this text, and these modules beside it."""
    for name, content in {'config': text, **modules}.items():
        with open(f'{name}.py', 'w') as file:
            file.write(content)


def config_error(text, **modules):
    """The message with which the reading of a config ends."""
    write(text, **modules)
    with pytest.raises(ConfigError) as caught:
        read_config('config.py')
    return explain(caught.value)


def test_a_module_that_does_not_exist_is_named(here):
    message = config_error("custom_imports = dict(imports=['no_such.module'])")
    assert "Failed to import no_such.module: No module named 'no_such'" in message
    assert str(here) in message


def test_an_unknown_key_of_custom_imports_is_named(here):
    message = config_error("custom_imports = dict(imports=['os'], allow_failed=True)")
    assert (
        "custom_imports takes no key 'allow_failed', did you mean 'allow_failed_imports'" in message
    )


def test_a_missing_import_of_a_custom_module_is_named(here):
    imports = "custom_imports = dict(imports=['my_broken'])"
    message = config_error(imports, my_broken='import no_such\n')
    assert "Failed to import my_broken: No module named 'no_such'" in message


def test_an_import_that_fails_inside_the_package_keeps_its_traceback(here, monkeypatch):
    monkeypatch.delitem(sys.modules, 'xmodal.datasets.streaming', raising=False)
    monkeypatch.setitem(sys.modules, 'webdataset', None)
    imports = "custom_imports = dict(imports=['my_innocent'])"
    write(imports, my_innocent='import xmodal.datasets.streaming\n')
    with pytest.raises(ImportError):
        read_config('config.py')


def test_a_syntax_error_of_the_user_is_named_with_its_file_and_line(here):
    assert 'config.py, line 2: invalid syntax' in config_error('model = 1\ntrain cfg = 2\n')
    message = config_error("_base_ = './my_base.py'\n", my_base='a = 1\n\nb = = 2\n')
    assert 'my_base.py, line 3: invalid syntax' in message
    imports = "custom_imports = dict(imports=['my_slip'])"
    message = config_error(imports, my_slip='a = 1\nb = = 2\n')
    assert 'my_slip.py, line 2: invalid syntax' in message


@pytest.mark.parametrize(
    'text, base, message',
    [
        ("_base_ = './base.py'", "_base_ = './config.py'", r'config\.py inherits from itself: c'),
        ("_base_ = './base.py'", 'x = [0\n', r'base\.py, line 1: .* never closed'),
        ("_base_ = './nowhere.py'", '', r'config\.py, from nowhere\.py: No such file'),
        (
            "_base_ = 'configs/acerpe/pretrain_shapes.py'",
            '',
            r"No such file .*\. The package has it: _base_ = 'xmodal::acerpe/pretrain_shapes\.py'",
        ),
        ("_base_ = ['./base.py', 5]", '', r'config\.py: _base_ has 5, expected names of files'),
        ('_base_ = undefined', '', r"config\.py: NameError: name 'undefined'"),
        ("_base_ = './base.py'\nx = 1", 'a = 2\nb = 1 / 0', r'base\.py, line 2: ZeroDivisionError'),
        ('x = 1\ny = [][0]', '', r'config\.py, line 2: IndexError: list index'),
        ("_base_ = ['./base.py', './base.py']", 'a = 1', r'config\.py: .*[Dd]uplicate key'),
    ],
)  # fmt: skip
def test_a_config_that_cannot_be_read_is_named_with_the_reason(here, text, base, message):
    assert re.search(message, config_error(text, base=base))


def test_a_config_that_is_not_utf8_is_named(here):
    write("_base_ = './base.py'")
    Path('base.py').write_bytes("x = 'caf\xe9'".encode('latin-1'))
    with pytest.raises(ConfigError, match=r"base\.py: UnicodeDecodeError: 'utf-8' codec can't"):
        read_config('config.py')


def test_a_bug_is_no_sentence(capsys):
    def bug():
        return {}['key']

    with pytest.raises(KeyError):
        run_or_explain(bug)
    with pytest.raises(RuntimeError):  # PyTorch's, and so not deliberate
        run_or_explain(lambda: torch.zeros(2) @ torch.zeros(3))
    assert not capsys.readouterr().err


class Inner:
    """In no registry."""

    def __init__(self, width, depth=1): ...


class Middle(Inner):
    """Takes a key itself, and hands the others on."""

    def __init__(self, share, **others):
        super().__init__(**others)


class Open:
    """Passes its keys to something that is not a base."""

    def __init__(self, share, **others):
        self.inner = Inner(**others)


class Buggy:
    def __init__(self, width=1):
        len(width)


@pytest.mark.parametrize(
    'config, message',
    [
        (dict(type=Inner, wdth=3), "Inner takes no key 'wdth', did you mean 'width'?"),
        (dict(type=Middle, share=1, dpth=3), "Middle takes no key 'dpth', did you mean 'depth'?"),
        (
            dict(type=Middle, share=1, zzz=3),
            "Middle takes no key 'zzz'; it takes share, width, depth",
        ),
        (dict(type=Middle, width=3), "Middle needs 'share', which the config does not give"),
    ],
)
@pytest.mark.parametrize('registry', [MODELS, HOOKS, HOOKS.parent], ids=['MODELS', 'HOOKS', 'root'])
def test_a_key_that_no_base_takes_is_explained_by_those_they_take(registry, config, message):
    register_all()  # MMEngine's own registries explain errors only after this
    with pytest.raises(ConfigError) as caught:
        registry.build(config)
    assert explain(caught.value) == message


def test_keys_that_are_passed_to_no_base_are_refused_only_where_they_end():
    assert MODELS.build(dict(type=Open, share=1, width=2)).inner
    with pytest.raises(ConfigError, match='Open passes keys on that are refused: .*wdth'):
        MODELS.build(dict(type=Open, share=1, wdth=2))


INSTALLED = """
from xmodal.models.necks import NoPosition
from xmodal.registry import MODELS

@MODELS.register_module(force=True)
class InstalledPosition(NoPosition):
    def __init__(self, depth, embed_dims, num_heads):
        super().__init__(depth, embed_dims, num_heads)
        {line}
"""


@pytest.mark.parametrize(
    ('line', 'error', 'message'),
    [
        ('depth.scale', AttributeError, "no attribute 'scale'"),
        ('(lambda fusion: 0)()', TypeError, "missing 1 .* 'fusion'"),
        ("raise ValueError('no head')", ValueError, '^no head$'),
    ],
)
def test_a_bug_of_an_installed_plug_in_is_not_blamed_on_the_part_around_it(
    tiny_config, tmp_path, monkeypatch, line, error, message
):
    folder = tmp_path / 'site-packages'
    folder.mkdir()
    (folder / 'installed_plugin.py').write_text(INSTALLED.format(line=line))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    sys.modules.pop('installed_plugin', None)
    importlib.import_module('installed_plugin')
    tiny_config.model.backbone.position = dict(type='InstalledPosition')
    with pytest.raises(error, match=message) as caught:
        MODELS.build(tiny_config.model)
    assert not isinstance(caught.value, ConfigError)


def test_a_type_error_inside_a_constructor_passes_through():
    with pytest.raises(TypeError, match='has no len') as caught:
        MODELS.build(dict(type=Buggy, width=2))
    assert explain(caught.value) is None


@pytest.mark.parametrize(
    'config, message',
    [
        (dict(type='ITCHed'), "type='ITCHed' is not a registered model, did you mean 'ITCHead'?"),
        (dict(type='zzzzzz'), "type='zzzzzz' is not a registered model. A component of your own"),
        (dict(type='mmzzz.ITCHed'), "a registered model: the package 'mmzzz' is not installed. A "),
        (
            dict(type='MomentumDistillationHook'),
            "='MomentumDistillationHook' is registered as a hook, and a model is expected: is it",
        ),
        (dict(type='EpochBasedTrainLoop'), 'is registered as a loop, and a model is expected'),
        (dict(width=3), r"\{'width': 3\} of the config has no type"),
        ('ITCHead', "expected a dict with type='…' for a model, got 'ITCHead'"),
    ],
)
def test_a_type_that_cannot_be_built_is_an_error(config, message):
    with pytest.raises(ConfigError, match=message):
        MODELS.build(config)


def test_the_default_scope_of_another_project_is_named(tiny_config):
    tiny_config.default_scope = 'mmpretrain'
    with pytest.raises(ConfigError, match=r"default_scope='mmpretrain', .* write default_scope='x"):
        check_needed(tiny_config)
    tiny_config.runner_type = 'Runner'  # MMEngine's, found from any scope
    check_needed(tiny_config)


@pytest.mark.parametrize(
    'options',
    [
        {'fsdp.units': ['Block']},  # a section of the runner's that the config lacks
        {'variable': 2},  # a variable of the config, that a plug-in may read
        {'model.heads.itm.type': 'ITMHead', 'model.heads.itm.scale': 1},  # new, with its type
        {'optim_wrapper.paramwise_cfg.norm_decay_mult': 0},  # read by its name, without a type
        {'model.layers.0.width': 3},  # in a list
    ],
)
def test_an_option_that_something_reads_passes(options):
    heads = dict(itc=dict(type='ITCHead'))
    wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD'))
    model = dict(heads=heads, layers=[dict(width=2)])
    check_options(Config(dict(model=model, optim_wrapper=wrapper, variable=1)), options)


def test_an_option_for_a_variable_that_keys_were_made_of_is_refused():
    steps = [dict(type='LoadImage')]
    loader = dict(data_root='data/', dataset=dict(data_root='data/', pipeline=steps))
    config = Config(dict(data_root='data/', steps=steps, train_dataloader=loader))
    keys = ['train_dataloader.data_root', 'train_dataloader.dataset.data_root']
    with pytest.raises(ConfigError, match=f'data_root.* change {", ".join(keys)}$'):
        check_options(config, {'data_root': 'elsewhere/'})
    with pytest.raises(ConfigError, match='change train_dataloader.dataset.pipeline$'):
        check_options(config, {'steps': []})


def test_a_new_section_that_resembles_another_is_refused():
    config = Config(dict(model=dict(backbone=dict(fusion=dict(depth=1)))))
    with pytest.raises(ConfigError, match=r"'model\.bakcbone', did you mean 'model\.backbone'\?$"):
        check_options(config, {'model.bakcbone.fusion.depth': 2})


def test_a_top_level_dict_that_nothing_reads_is_refused():
    check_keys(Config(dict(my_pipeline=dict(a=1), width=3)))
    with pytest.raises(ConfigError, match=r"'test_cgf', did you mean 'test_cfg'\? A dict of"):
        check_keys(Config(dict(test_cgf=dict(a=1))))
    with pytest.raises(ConfigError, match="env_cfg takes no key 'x'; it takes cudnn_benchmark, "):
        check_keys(Config(dict(env_cfg=dict(x=1))))


@pytest.mark.parametrize(
    'keys, message',
    [
        (dict(num_worker=2), "DataLoader takes no key 'num_worker', did you mean 'num_workers'?"),
        (
            dict(collate_fn=dict(type='stack_image')),
            "type='stack_image' is not a registered function, did you mean 'stack_images'?",
        ),
        (
            dict(collate_fn=dict(type='default_collate', width=2)),
            "default_collate takes no key 'width'; it takes data_batch",
        ),
    ],
)
def test_a_data_loader_refuses_unknown_keys_and_functions(keys, message):
    check_dataloader(dict(dataset=None, batch_size=2, collate_fn=dict(type='stack_images')))
    check_dataloader(dict(dataset=None, batch_size=2, collate_fn=stack_images))
    with pytest.raises(ConfigError) as caught:
        check_dataloader(dict(dataset=None, batch_size=2, **keys))
    assert str(caught.value).startswith(message)


def test_an_epoch_of_a_stream_is_not_cut_by_the_data_loader():
    loader = dict(dataset=dict(type='WebDatasetShards'), batch_size=2)
    check_dataloader(loader)
    with pytest.raises(ConfigError, match='=3 takes .* a WebDatasetShards is a stream'):
        check_dataloader(dict(loader, num_batch_per_epoch=3))
    check_dataloader(dict(dataset=dict(type='AlbefJsonDataset'), num_batch_per_epoch=3))


@pytest.mark.parametrize('name', ['val', 'test'])
def test_the_default_loops_refuse_unknown_keys(tiny_config, name):
    tiny_config[f'{name}_cfg'] = dict(fp61=True)
    tiny_config[f'{name}_evaluator'] = dict(type='RetrievalMetric')
    tiny_config.experiment_name = f'unknown key of {name}'
    runner = build_runner(tiny_config)
    loop = f'{name.capitalize()}Loop'
    with pytest.raises(ConfigError, match=f"{loop} takes no key 'fp61', did you mean 'fp16'"):
        getattr(runner, f'{name}_loop')


def test_an_error_of_a_data_worker_is_told_without_the_workers_traceback(tiny_world, tmp_path):
    root = shutil.copytree(tiny_world, tmp_path / 'broken')
    image = root / 'images/test/000/test_000003.png'
    image.write_bytes(b'version https://git-lfs.github.com/spec/v1')
    dataset = AlbefJsonDataset(
        'albef/test.json',
        str(root),
        pipeline=[dict(type='LoadImage'), dict(type='PackImageText')],
        test_mode=True,
    )
    with pytest.raises(BrokenImageError) as raised:
        list(DataLoader(dataset, num_workers=1, collate_fn=list))
    sentence = explain(raised.value)
    assert sentence.startswith(str(image)) and 'Traceback' not in sentence
