"""The command ``xmodal``: which tools it runs, what it imports, and what it says."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mmengine.config import Config

from xmodal import cli
from xmodal.engine.launch import read_config
from xmodal.errors import ConfigError
from xmodal.packaged import ROOT, find_file

HEAVY = {'torch', 'transformers', 'timm', 'cv2', 'PIL', 'matplotlib'}


@pytest.fixture
def command(monkeypatch):
    """Calls ``xmodal`` in this process."""

    def call(*words):
        monkeypatch.setattr(sys, 'argv', ['xmodal', *map(str, words)])
        monkeypatch.setitem(sys.modules, '__main__', sys.modules['__main__'])
        cli.main()

    return call


def modules_after(*words):
    """The modules that a Python process has imported at its end."""
    code = f'import atexit, sys; atexit.register(lambda: print(*sys.modules)); {" ".join(words)}'
    ended = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    return set(ended.stdout.splitlines()[-1].split())


def test_the_package_imports_nothing_but_its_version():
    new = modules_after('import xmodal') - modules_after('pass')
    others = {name for name in new if name.split('.')[0] not in sys.stdlib_module_names}
    assert others == {'xmodal', 'xmodal.version'}


def test_the_list_of_commands_needs_the_standard_library_alone():
    code = "sys.argv = ['xmodal', '--help']; import xmodal.cli; xmodal.cli.main()"
    packages = {name.partition('.')[0] for name in modules_after(code) - modules_after('pass')}
    assert packages - sys.stdlib_module_names == {'xmodal'}


@pytest.mark.parametrize('tool', ['train', 'test', 'info'])
def test_help_on_training_imports_no_pytorch(tool):
    modules = modules_after(
        f"sys.argv = ['xmodal', '{tool}', '--help']; import xmodal.cli; xmodal.cli.main()"
    )
    assert 'argparse' in modules and not modules & HEAVY


def test_every_tool_is_a_command():
    tools = {str(f.relative_to('tools')) for f in Path('tools').rglob('*.py')}
    assert set(cli.COMMANDS.values()) == {name for name in tools if '__init__' not in name}


def test_commands_are_listed_with_the_first_line_of_their_tools(command, capsys):
    with pytest.raises(SystemExit, match='0'):
        command('--help')
    printed = capsys.readouterr().out
    assert '\n  vqa-split             Splits questions and annotations of VQA v2 by image.\n' in (
        printed
    )
    assert all(f'\n  {name} ' in printed for name in cli.COMMANDS)


def test_a_command_is_the_tool_as_the_main_module(command, tmp_path):
    (tmp_path / 'captions.txt').write_text('a dog\na dog\n')
    out = tmp_path / 'vocab.json'
    command('build-vocab', tmp_path / 'captions.txt', '--out', out, '--least', 1)
    assert '"dog"' in out.read_text()
    main = sys.modules['__main__']
    assert main.__spec__ is None and main.__file__ == str(
        ROOT / 'tools' / cli.COMMANDS['build-vocab']
    )


def test_ctrl_c_ends_a_tool_without_a_traceback(tmp_path):
    tool = tmp_path / 'tool.py'
    tool.write_text('import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)')
    code = f"cli.COMMANDS['own'] = {str(tool)!r}; sys.argv = ['xmodal', 'own']; cli.main()"
    code = f'import sys; from xmodal import cli; {code}'
    ended = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, '')


@pytest.mark.parametrize(
    'name, hint', [('trian', "did you mean 'train'?"), ('q', '`xmodal --help` lists them')]
)
def test_an_unknown_command_is_named(command, capsys, name, hint):
    with pytest.raises(SystemExit, match='2'):
        command(name)
    assert f"there is no command '{name}', {hint}" in capsys.readouterr().err


def test_errors_name_commands_that_a_wheel_has_in_any_folder():
    named = [
        f'{file}, line {error.lineno}: {text.value}'
        for folder in ('xmodal', 'tools')
        for file in (ROOT / folder).rglob('*.py')
        for error in ast.walk(ast.parse(file.read_text('utf-8')))
        if isinstance(error, ast.Raise)
        for text in ast.walk(error)
        if isinstance(text, ast.Constant) and re.search(r'tools/\S+\.py', str(text.value))
    ]
    assert not named


def test_what_is_missing_is_printed(command, capsys, monkeypatch, tmp_path):
    requirements = ['torch>=2', "no-such-package[x]>=3; extra == 'figures'", 'pip; extra == "test"']
    monkeypatch.setattr('importlib.metadata.requires', lambda _: requirements)
    (tmp_path / 'coco').mkdir()
    command('info', '--data', tmp_path)
    printed = capsys.readouterr().out
    assert "  figures       missing no-such-package: pip install 'xmodal[figures]'\n" in printed
    assert '  test          installed\n' in printed
    assert f'{tmp_path} ' in printed and ' coco\n' in printed
    assert f'xmodal make-shapes --out {tmp_path}/shapes' in printed


def test_a_file_of_the_package_is_found_from_any_folder(monkeypatch, tmp_path):
    name = 'acerpe/pretrain_4m.py'
    assert find_file(f'xmodal::{name}') == Path('configs', name)
    assert find_file('data/a.json') == Path('data/a.json')
    monkeypatch.chdir(tmp_path)
    for given in (f'xmodal::{name}', f'configs/{name}'):
        assert find_file(given) == ROOT / 'configs' / name
    assert find_file('configs/none.py') == Path('configs/none.py')
    (tmp_path / 'configs/acerpe').mkdir(parents=True)
    (tmp_path / 'configs' / name).touch()
    assert find_file(f'configs/{name}') == Path('configs', name)  # the user's own
    assert find_file(f'xmodal::{name}') == ROOT / 'configs' / name


def test_a_config_inherits_from_one_of_the_package(tmp_path):
    file = tmp_path / 'mine.py'
    file.write_text("_base_ = 'xmodal::acerpe/pretrain_shapes.py'\nmodel = dict(queue_length=4)")
    config = read_config(file)
    expected = read_config('configs/acerpe/pretrain_shapes.py')
    expected.model.queue_length = 4
    assert config.to_dict() == expected.to_dict()
    name = 'xmodal::acerpe/pretrain_shapes.py'
    assert Config.fromfile(name).model == read_config(name).model
    file.write_text("_base_ = 'xmodal::acerpe/none.py'")
    with pytest.raises(ConfigError, match=r'mine\.py, from configs/acerpe/none\.py: No such file'):
        read_config(file)
