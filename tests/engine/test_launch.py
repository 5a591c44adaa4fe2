"""Command lines, and the configs that they name."""

import argparse
import sys
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.device import utils as devices

from xmodal.engine.command_line import ShowDefaults
from xmodal.engine.launch import build_runner, load_config, read_config
from xmodal.engine.work_dir import config_and_checkpoint
from xmodal.errors import ConfigError, FileError


def test_a_module_of_the_working_directory_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    kept = [path for path in sys.path if path not in ('', str(tmp_path))]
    monkeypatch.setattr(sys, 'path', kept)
    (tmp_path / 'my_plugin_here.py').write_text('value = 3\n')
    (tmp_path / 'config.py').write_text(
        "custom_imports = dict(imports=['my_plugin_here'])\nrunner_type = 'Runner'\n"
    )
    args = SimpleNamespace(
        config='config.py', cfg_options=None, launcher='none', local_rank=0, work_dir=None
    )
    load_config(args)
    assert sys.modules.pop('my_plugin_here').value == 3
    read_config('config.py')
    sys.modules.pop('my_plugin_here')
    assert sys.path.count(str(tmp_path)) == 1


@pytest.mark.parametrize('form', ['py', 'yaml', 'json'])
def test_the_folder_of_a_run_has_its_config_as_python(tiny_config, tmp_path, form):
    tiny_config.work_dir = str(tmp_path / 'run')
    tiny_config.dump(tmp_path / f'mine.{form}')
    build_runner(read_config(str(tmp_path / f'mine.{form}')))
    (tmp_path / 'run/rankings.json').write_text('{}')
    checkpoint = tmp_path / 'run/epoch_1.pth'
    torch.save({}, checkpoint)
    found = config_and_checkpoint(tmp_path / 'run')
    assert found == (tmp_path / 'run/mine.py', checkpoint)
    assert Config.fromfile(found[0]).model.to_dict() == tiny_config.model.to_dict()
    tiny_config.dump(tmp_path / 'run/a_test.py')
    with pytest.raises(FileError, match=r'run has several configs, a_test\.py, mine\.py: keep the'):
        config_and_checkpoint(tmp_path / 'run')


def test_a_module_named_on_the_command_line_is_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / 'my_other_plugin.py').write_text('value = 4\n')
    (tmp_path / 'config.py').write_text("runner_type = 'Runner'\n")
    options = {'custom_imports.imports': ['my_other_plugin']}
    load_config(
        SimpleNamespace(
            config='config.py', cfg_options=options, launcher='none', local_rank=0, work_dir=None
        )
    )
    assert sys.modules.pop('my_other_plugin').value == 4


def test_the_launcher_is_no_option_of_a_config(tmp_path, monkeypatch):
    """It was accepted, and ``--launcher`` took its place."""
    monkeypatch.setenv('LOCAL_RANK', '0')
    (tmp_path / 'config.py').write_text("launcher = 'none'\n")  # as the config of a run
    with pytest.raises(ConfigError, match='--cfg-options launcher=pytorch: .* --launcher'):
        load_config(
            SimpleNamespace(
                config=str(tmp_path / 'config.py'), cfg_options={'launcher': 'pytorch'},
                launcher='none', local_rank=0, work_dir=None,
            )
        )  # fmt: skip


def test_help_shows_the_defaults_that_there_are():
    parser = argparse.ArgumentParser(formatter_class=ShowDefaults)
    parser.add_argument('--some', default=7, help='with one')
    parser.add_argument('--none', help='without')
    parser.add_argument('--switch', action='store_true', help='off')
    lines = parser.format_help().splitlines()
    endings = ['with one (default: 7)', 'without', 'off']
    for line, ending in zip(lines[-3:], endings, strict=True):
        assert line.endswith(f' {ending}')


def test_a_gpu_without_double_precision_is_left_out(tiny_config, monkeypatch):
    monkeypatch.setattr(devices, 'DEVICE', 'mps')  # as on a computer of Apple's
    model = build_runner(tiny_config).model
    assert {value.device.type for value in model.state_dict().values()} == {'cpu'}
