"""Errors of what the user wrote are sentences; those of the package keep their traceback."""

import shutil
import sys

import pytest
from mmengine.config import Config
from torch.utils.data import DataLoader

from xmodal.datasets.captions import AlbefJsonDataset
from xmodal.datasets.transforms import BrokenImageError
from xmodal.engine.errors import explain, run_or_explain
from xmodal.engine.keys import ConfigError, check_keys, check_options
from xmodal.engine.launch import read_config


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory, where Python does not look for modules by itself."""
    monkeypatch.chdir(tmp_path)
    kept = [path for path in sys.path if path not in ('', str(tmp_path))]
    monkeypatch.setattr(sys, 'path', kept)
    return tmp_path


def sentence(text, **modules):
    """What reading a config of this text, beside these modules, ends with."""
    for name, content in modules.items():
        with open(f'{name}.py', 'w') as file:
            file.write(content)
    with open('config.py', 'w') as file:
        file.write(text)
    with pytest.raises((ImportError, SyntaxError)) as caught:
        read_config('config.py')
    return explain(caught.value)


def test_a_module_that_is_not_there_is_named(here):
    found = sentence("custom_imports = dict(imports=['no_such.module'])")
    assert "Failed to import no_such.module: No module named 'no_such'" in found
    assert str(here) in found


def test_a_module_that_imports_what_is_not_there_is_named(here):
    found = sentence("custom_imports = dict(imports=['my_broken'])", my_broken='import no_such\n')
    assert "Failed to import my_broken: No module named 'no_such'" in found


def test_an_import_that_fails_inside_of_the_package_keeps_its_traceback(here, monkeypatch):
    monkeypatch.delitem(sys.modules, 'xmodal.datasets.streaming', raising=False)
    monkeypatch.setitem(sys.modules, 'webdataset', None)
    module = 'import xmodal.datasets.streaming\n'
    assert sentence("custom_imports = dict(imports=['my_innocent'])", my_innocent=module) is None


def test_a_slip_in_a_file_of_the_user_s_is_named_with_its_line(here):
    assert 'config.py, line 2: invalid syntax' in sentence('model = 1\ntrain cfg = 2\n')
    found = sentence("custom_imports = dict(imports=['my_slip'])", my_slip='a = 1\nb = = 2\n')
    assert 'my_slip.py, line 2: invalid syntax' in found


def test_a_bug_is_no_sentence(capsys):
    def bug():
        return {}['key']

    with pytest.raises(KeyError):
        run_or_explain(bug)
    assert not capsys.readouterr().err


class Inner:
    """In no registry."""

    def __init__(self, width, depth=1): ...


class Middle(Inner):
    """Takes a key itself, and hands the others on."""

    def __init__(self, share, **others):
        super().__init__(**others)


@pytest.mark.parametrize(
    'build, message',
    [
        (lambda: Inner(wdth=3), "Inner takes no key 'wdth', did you mean 'width'?"),
        (lambda: Middle(1, dpth=3), "Middle takes no key 'dpth', did you mean 'depth'?"),
        (lambda: Middle(1, zzz=3), "Middle takes no key 'zzz'; it takes share, width, depth"),
    ],
)
def test_a_key_that_no_base_takes_is_explained_by_those_they_take(build, message):
    with pytest.raises(TypeError) as caught:
        build()
    assert explain(caught.value) == message


@pytest.mark.parametrize(
    'options',
    [
        {'fsdp.units': ['Block']},  # a section of the runner's that the config lacks
        {'variable': 2},  # the config's own
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


def test_a_new_section_that_resembles_another_is_refused():
    config = Config(dict(model=dict(backbone=dict(fusion=dict(depth=1)))))
    with pytest.raises(ConfigError, match=r"'model\.netwrok', did you mean 'model\.backbone'\?$"):
        check_options(config, {'model.netwrok.fusion.depth': 2})


def test_a_top_level_dict_that_nothing_reads_is_refused():
    check_keys(Config(dict(my_pipeline=dict(a=1), width=3)))
    with pytest.raises(ConfigError, match=r"'test_cgf', did you mean 'test_cfg'\? A dict of"):
        check_keys(Config(dict(test_cgf=dict(a=1))))
    with pytest.raises(ConfigError, match="env_cfg takes no key 'x'; it takes cudnn_benchmark, "):
        check_keys(Config(dict(env_cfg=dict(x=1))))


def test_an_error_of_a_data_worker_is_told_without_the_workers_traceback(tiny_world, tmp_path):
    root = shutil.copytree(tiny_world, tmp_path / 'broken')
    picture = root / 'images/test/000/test_000003.png'
    picture.write_bytes(b'version https://git-lfs.github.com/spec/v1')
    dataset = AlbefJsonDataset(
        'albef/test.json',
        str(root),
        pipeline=[dict(type='LoadImage'), dict(type='PackImageText')],
        test_mode=True,
    )
    with pytest.raises(BrokenImageError) as raised:
        list(DataLoader(dataset, num_workers=1, collate_fn=list))
    sentence = explain(raised.value)
    assert sentence.startswith(str(picture)) and 'Traceback' not in sentence
