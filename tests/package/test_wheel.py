"""The wheel, in an environment and a folder of its own."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import pytest

pytest.importorskip('build', reason="the wheel is made by the package 'build'")
pytest.importorskip('setuptools', reason='the wheel is made by setuptools')

SOURCES = ('xmodal', 'configs', 'tools')
# Trains two steps of a pre-training that inherits from the wheel's, tests tables and prompts.
SCRIPT = """
import sys
from pathlib import Path
import xmodal
from mmengine.config import Config
from xmodal.ablation import Commands, Plan, find_table, missing_by_stage, read_table
from xmodal.cli import main
from xmodal.engine.loops.zero_shot import read_templates

folder = Path(xmodal.__file__).parent / '.mim'
assert folder.is_dir() and folder.is_relative_to(sys.prefix)
assert read_templates('configs/_base_/prompts/shapes.json')
plan = Plan(read_table(find_table('acerpe/table1'), only=['none']), 1, Path('runs'))
assert plan.runs[0].config.model.type == 'AlbefPretrainer'
_, script, *_ = Commands().train(plan.runs[0])
assert Path(script).samefile(folder / 'tools/train.py')
zero_shot = read_table(find_table('emkum/table2'))
assert not any('prompts' in file for files in missing_by_stage(Plan(zero_shot, 1, Path('runs')))
               .values() for file in files)
config = Config.fromfile('mine.py')
assert config.model.backbone.position.type == 'AnchorRelativePosition'
assert '_scope_' not in config.model
sys.argv = ['xmodal', 'train', 'mine.py', '--work-dir', 'run']
main()
"""
CONFIG = """
_base_ = 'xmodal::acerpe/pretrain_shapes.py'
load_from = None
model = dict(
    data_preprocessor=dict(tokenizer=dict(pretrained='{world}/vocab.txt')),
    backbone=dict(
        image_encoder=dict(
            image_size=32, patch_size=8, embed_dim=16, num_heads=2, depth=1, pretrained=False
        ),
        text_encoder=dict(
            config=dict(
                hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
            )
        ),
        fusion=dict(embed_dims=16, num_heads=2, depth=1),
    ),
    heads=dict(mim=dict(block=8)),
)
loader = dict(num_workers=0, persistent_workers=False, dataset=dict(data_root='{world}'))
train_dataloader = dict(num_batch_per_epoch=2, global_batch_size=4, **loader)
val_dataloader = test_dataloader = loader
train_cfg = dict(max_epochs=1, val_interval=9)
param_scheduler = None
default_hooks = dict(logger=dict(interval=1))
"""


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    """What ``python -m build`` makes of the sources: an sdist, and the wheel from it."""
    source, out = tmp_path_factory.mktemp('source'), tmp_path_factory.mktemp('dist')
    for name in SOURCES:
        copytree(name, source / name, ignore=ignore_patterns('__pycache__'))
    for file in [*Path().glob('*.*'), Path('LICENSE')]:
        if file.is_file():
            copy(file, source)
    command = [sys.executable, '-m', 'build', '--no-isolation', '--outdir', str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (file,) = out.glob('*.whl')
    return file


@pytest.fixture(scope='module')
def environment(wheel, tmp_path_factory):
    """A new environment with the wheel, and with the requirements of this one; its programs."""
    folder = tmp_path_factory.mktemp('environment')
    venv.create(folder)
    python = str(folder / 'bin/python')
    pip = [sys.executable, '-m', 'pip', '--python', python, '--disable-pip-version-check']
    subprocess.run([*pip, 'install', '--quiet', '--no-deps', '--no-index', wheel], check=True)
    (packages,) = folder.glob('lib/python*/site-packages')
    # Of the requirements alone: lines of .pth files in there, such as this checkout's, do not act.
    (packages / 'requirements.pth').write_text(sysconfig.get_path('purelib'))
    return folder / 'bin'


def run(program, *arguments, folder, **variables):
    environ = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
    return subprocess.run(
        [program, *arguments], cwd=folder, env=environ | variables, capture_output=True, text=True
    )


def test_the_wheel_trains_a_config_that_inherits_from_it(environment, tiny_world, tmp_path):
    (tmp_path / 'mine.py').write_text(CONFIG.format(world=tiny_world))
    ended = run(environment / 'python', '-c', SCRIPT, folder=tmp_path)
    assert ended.returncode == 0, ended.stderr[-5000:]
    assert (tmp_path / 'run/last_checkpoint').read_text().endswith('epoch_1.pth')
    (log,) = (tmp_path / 'run').glob('*/vis_data/scalars.json')
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    assert [step['step'] for step in steps if 'loss' in step] == [1, 2]


def test_the_command_of_the_wheel_lists_its_tools(environment, tmp_path):
    ended = run(environment / 'xmodal', '--help', folder=tmp_path)
    assert 'Trains a config' in ended.stdout and not ended.stderr
    ended = run(environment / 'xmodal', 'train', folder=tmp_path)
    assert ended.returncode == 2 and ended.stderr.startswith('usage: xmodal train ')


def test_scripts_of_the_wheel_can_be_started(environment):
    (tools,) = environment.parent.glob('lib/python*/site-packages/xmodal/.mim/tools')
    assert os.access(tools / 'dist_train.sh', os.X_OK)
    for folder in ('configs', 'tools'):
        assert files(tools.parent / folder) == files(folder)


def files(folder):
    return {
        path.relative_to(folder)
        for path in Path(folder).rglob('*')
        if path.is_file() and path.suffix != '.pyc'
    }
