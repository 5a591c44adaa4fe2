"""What a dry run of a table says that a machine lacks, and that every table has one."""

import sys
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from tools import ablate
from xmodal.ablation import Plan, missing_by_stage, missing_gpus, read_table, requirements

CONFIG = """
train_cfg = dict(max_epochs=3)
load_from = 'work_dirs/elsewhere.pth'
model = dict(
    data_preprocessor=dict(tokenizer=dict(pretrained='words')),
    backbone=dict(
        image_encoder=dict(arch='vit_base_patch16_224', pretrained=True),
        text_encoder=dict(config='sizes', pretrained='weights'),
        fusion=dict(pretrained=None),
        of_a_plug_in=dict(type='OwnEncoder', pretrained=True),
    ),
    heads=dict(answers=dict(answer_list='answers.json'), itm=None),
)
train_dataloader = dict(dataset=dict(type='WeightedConcatDataset', datasets=[
    dict(
        type='VqaDataset', data_root='data', data_prefix=dict(image='images'),
        ann_file=['a.json', 'b.json'], answer_file='c.json', answer_list='d.json',
    ),
    dict(
        type='LxmertQuestionDataset', data_root='data', ann_file='e.json',
        pipeline=[dict(type='LoadRegions', store=['store_1', 'store_2'])],
    ),
]))
val_dataloader = dict(dataset=dict(type='PrecompDataset', data_root='precomp', split='dev'))
test_dataloader = dict(dataset=dict(
    type='KarpathyDataset', data_root='data', data_prefix=None, ann_file='k.json',
))
test_evaluator = [dict(type='GqaMetric', choices='choices.json', scene_graphs='graphs.json')]
test_cfg = dict(loops=dict(classes=dict(
    templates='templates.json',
    dataloader=dict(dataset=dict(
        type='ClassFolderDataset', data_root='classes', class_names='names.json',
    )),
)))
"""
TRAINING = [
    'data/a.json',
    'data/b.json',
    'data/c.json',
    'data/d.json',
    'data/images',
    'data/e.json',
    'store_1',
    'store_2',
    'precomp/dev_ims.npy',
    'precomp/dev_caps.txt',
]
TEST = ['data/k.json', 'choices.json', 'graphs.json', 'templates.json', 'names.json', 'classes']
MODEL = ['answers.json', 'words (vocabulary)']
WEIGHTS = [
    'timm/vit_base_patch16_224.augreg2_in21k_ft_in1k (weights)',
    'weights (weights)',
    'sizes (sizes)',
]
TABLE = """
title = 'A table'
group = 'paper'
presets = dict(large=dict(label='on a stub', gpus=4, stages=dict(
    pretrain=dict(config='config.py', takes=[]),
    task=dict(config='config.py', takes=[], after='pretrain'),
    dev=dict(tests='task', options={'test_dataloader.dataset.ann_file': 'dev.json'}),
)))
columns = dict(large=dict(score=('task', 'score'), dev=('dev', 'score')))
paper_columns = []
rows = dict(one=dict(), two=dict())
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Two rows of three stages, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    Path('config.py').write_text(CONFIG)
    Path('table.py').write_text(TABLE)
    return Plan(read_table('table.py'), 1, Path('runs'))


def make(*files):
    for file in files:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text('{}')


def test_a_stage_lacks_the_files_that_its_config_names(plan):
    assert (
        missing_by_stage(plan)
        == {
            'pretrain': [*TRAINING, *MODEL, *WEIGHTS, 'work_dirs/elsewhere.pth'],
            'task': [*TRAINING, *TEST, *MODEL, *WEIGHTS],  # starts from what the stage before makes
            'dev': ['data/dev.json', *TEST[1:], *MODEL],
        }
    )


def test_a_file_that_is_there_is_not_missing(plan):
    make('data/a.json', 'data/images/1.jpg', 'store_2/store.json', 'precomp/dev_ims.npy')
    make('answers.json', 'words', 'weights/model.safetensors', 'sizes/config.json', 'classes/a/1')
    there = {'data/a.json', 'data/images', 'store_2', 'precomp/dev_ims.npy', 'classes'}
    there |= {*MODEL, *WEIGHTS[1:]}
    expected = [file for file in [*TRAINING, *TEST, *MODEL, *WEIGHTS] if file not in there]
    assert missing_by_stage(plan)['task'] == expected


def test_a_folder_of_a_model_without_its_weights_is_missing(plan):
    make('weights/config.json')
    assert 'weights (weights)' in missing_by_stage(plan)['task']


def test_a_model_in_the_cache_of_the_hub_is_not_missing(plan, monkeypatch):
    asked = []

    def cached_file(name, file, local_files_only):
        assert local_files_only
        asked.append((name, file))
        return f'cache/{name}/{file}'

    monkeypatch.setattr(requirements, 'cached_file', cached_file)
    assert missing_by_stage(plan)['task'] == [*TRAINING, *TEST, 'answers.json']
    assert {('words', 'tokenizer.json'), ('weights', 'model.safetensors')} <= set(asked)


def test_a_package_is_missing_until_it_is_installed(plan, tmp_path, monkeypatch):
    words = 'package:a_package_of_words'
    Path('of_package.py').write_text(CONFIG.replace("'words'", f"'{words}'"))
    Path('table.py').write_text(TABLE.replace('config.py', 'of_package.py'))
    plan = Plan(read_table('table.py'), 1, Path('runs'))
    assert f'{words} (vocabulary)' in missing_by_stage(plan)['task']
    make(*(f'a_package_of_words/{name}' for name in ('__init__.py', 'config.json', 'vocab.txt')))
    monkeypatch.syspath_prepend(tmp_path)
    assert f'{words} (vocabulary)' not in missing_by_stage(plan)['task']


def test_what_is_finished_lacks_nothing(plan):
    for run in plan.runs:
        if run.stage.trains:
            make(run.last_checkpoint)
    needed = missing_by_stage(plan)
    assert needed == {'task': [*TEST, *MODEL], 'dev': ['data/dev.json', *TEST[1:], *MODEL]}
    for run in plan.runs:
        make(run.metrics_file)
    assert missing_by_stage(plan) == {} and missing_gpus(plan) is None


@pytest.mark.parametrize('found', [0, 3])
def test_gpus_that_the_paper_has_and_the_machine_has_not_are_counted(plan, monkeypatch, found):
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: found)
    assert missing_gpus(plan) == f'GPUs: the paper has 4, this machine {found}'


def test_a_dry_run_says_after_the_commands_what_is_missing(plan, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 4)
    monkeypatch.setattr(sys, 'argv', ['ablate.py', 'table.py', '--dry-run', '--seeds', '1'])
    ablate.main()
    printed = capsys.readouterr().out
    missing = [f'# dev: {1 + len(TEST[1:]) + len(MODEL)} missing', '#   data/dev.json']
    assert '\n'.join(missing) in printed
    assert (
        printed.rindex('tools/test.py') < printed.index('# pretrain: ') < printed.index('A table')
    )
    assert 'GPUs' not in printed


PRESETS = [
    (f'{file.parent.parent.name}/{file.stem}', preset)
    for file in sorted(Path('configs').glob('[!_]*/ablations/*.py'))
    for preset in Config.fromfile(file).columns
]


@pytest.mark.parametrize('table, preset', PRESETS)
def test_every_preset_of_every_table_has_a_dry_run(table, preset, tmp_path, monkeypatch, capsys):
    arguments = ['--preset', preset, '--dry-run', '--seeds', '1', '--root', str(tmp_path)]
    monkeypatch.setattr(sys, 'argv', ['ablate.py', table, *arguments])
    ablate.main()
    printed = capsys.readouterr().out
    assert 'tools/train.py' in printed and 'tools/test.py' in printed
    assert 'the same command continues them' in printed
    assert not list(tmp_path.iterdir())
