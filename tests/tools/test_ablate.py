"""Tables of ablations: what is run, in what order, stopping, resuming, and what is printed."""

import json
import os
import shutil
import sys
import threading
import time
from argparse import ArgumentParser
from copy import deepcopy
from math import isnan
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from rich.console import Console

from tools import ablate, train
from tools import test as test_tool
from xmodal.ablation import (
    Commands,
    Plan,
    TableRunner,
    find_table,
    grid,
    print_grid,
    read_table,
    row_config,
    to_markdown,
)
from xmodal.ablation.remaining import remaining_seconds
from xmodal.ablation.runner import _lock
from xmodal.ablation.runs import RECORD
from xmodal.ablation.table import Stage, _variants
from xmodal.engine.checkpoint import load_start_weights
from xmodal.engine.command_line import add_common_arguments
from xmodal.engine.errors import ConfigError
from xmodal.engine.hooks import DelayedHeadsHook
from xmodal.engine.keys import check_keys, check_options
from xmodal.engine.launch import read_config
from xmodal.errors import FileError
from xmodal.evaluation.queries import checkpoint_name, read_queries, with_test_set
from xmodal.files import write_json
from xmodal.registry import DATASETS, MODELS

CONFIG = """
train_cfg = dict(max_epochs=3)
model = dict(position=dict(type='ace', groups=8), heads=dict(ace=dict(scale=2.0), mlm=dict(p=1)))
"""
TABLE = """
title = 'A table'
group = 'paper'
reference = 'full'
presets = dict(small=dict(label='on a stub', stages=dict(
    pretrain=dict(config='{folder}/pretrain.py', takes=['model']),
    task=dict(
        config='{folder}/task.py', after='pretrain', takes=['model.position'],
        options=dict(train_cfg=dict(max_epochs=1)),
    ),
    unused=dict(config='{folder}/not_there.py', takes=['model']),
)))
columns = dict(small=dict(score=('task', 'score'), both=('task', ['score', 'other'])))
paper_columns = ['score']
rows = dict(
    none=dict(
        override=dict(
            model=dict(position=dict(_delete_=True, type='none'), heads=dict(ace=None))
        ),
        label='None',
        paper=[70.5],
    ),
    full=dict(label='Full', paper=[71]),
    late=dict(override=dict(), stages=dict(pretrain='none', task='full')),
)
"""
# Trains an epoch at a time, saves at SIGTERM as tools/train.py does, and notes how it was called.
# Beside it, `fail` names folders to fail in, `fail_in_validation` one to fail in after the last
# epoch, and `interrupt` one in which it has its parent interrupted after the first epoch.
TRAIN = """
import json, os, pathlib, runpy, signal, sys, time

here = pathlib.Path(__file__).parent
with open(here / 'journal', 'a') as journal:
    journal.write(json.dumps(sys.argv[1:]) + '\\n')
config, work_dir = sys.argv[1], pathlib.Path(sys.argv[3])
options = dict(item.split('=', 1) for item in sys.argv[sys.argv.index('--cfg-options') + 1:])
last = work_dir / 'last_checkpoint'
if (here / 'fail').is_file() and (here / 'fail').read_text() in str(work_dir):
    sys.exit('the sentence that says why')
assert ('--resume' in sys.argv) == last.is_file()
if 'load_from' in options:
    assert pathlib.Path(options['load_from']).is_file()

def save(name):
    (work_dir / name).write_text('weights')
    last.write_text(name)

def stop(*_):
    save('iter_1.pth')
    sys.exit(0)

signal.signal(signal.SIGTERM, stop)
epochs = int(options.get('train_cfg.max_epochs', runpy.run_path(config)['train_cfg']['max_epochs']))
for epoch in range(1, epochs + 1):
    save(f'epoch_{epoch}.pth')
    interrupt = here / 'interrupt'
    if interrupt.is_file() and interrupt.read_text() in str(work_dir):
        interrupt.unlink()
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)
validation = here / 'fail_in_validation'
if validation.is_file() and validation.read_text() in str(work_dir):
    validation.unlink()
    sys.exit('after the last epoch')
"""
TEST = """
import json, pathlib, sys

options = dict(item.split('=', 1) for item in sys.argv[sys.argv.index('--cfg-options') + 1:])
assert pathlib.Path(sys.argv[2]).is_file()
score = 60 + int(options['randomness.seed']) * 2
out = pathlib.Path(sys.argv[sys.argv.index('--metrics') + 1])
if 'test_cfg.save_scores' in options:
    with open(options['test_cfg.save_scores'], 'x') as scores:  # a new file, as the tool
        scores.write(str(score + ('task' in sys.argv[1])))
out.write_text(json.dumps({'score': score, 'other': score + 4}))
"""
ENSEMBLE = """
import json, pathlib, sys

assert sys.argv[sys.argv.index('--config') + 1].endswith('task.py')
scores = [int(pathlib.Path(file).read_text()) for file in sys.argv[1:sys.argv.index('--config')]]
out = pathlib.Path(sys.argv[sys.argv.index('--metrics') + 1])
out.write_text(json.dumps({'score': sum(scores) / len(scores)}))
"""


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """A folder with stage configs, a table, and stubs of the tools, which take no second."""
    monkeypatch.setattr('xmodal.ablation.runner.POLL', 0.02)
    folder = tmp_path / 'paper'
    for part in ('ablations', 'tools/analysis'):
        (folder / part).mkdir(parents=True)
    for name in ('pretrain', 'task'):
        (folder / f'{name}.py').write_text(CONFIG)
    (folder / 'ablations/table.py').write_text(TABLE.format(folder=folder))
    (folder / 'tools/train.py').write_text(TRAIN)
    (folder / 'tools/test.py').write_text(TEST)
    (folder / 'tools/analysis/ensemble.py').write_text(ENSEMBLE)
    return folder


def make_plan(paper, seeds=1, only=None):
    return Plan(read_table(paper / 'ablations/table.py', only=only), seeds, paper / 'runs')


def execute(paper, plan):
    commands = Commands()
    commands.tools = paper / 'tools'
    runner = TableRunner(plan, commands)
    runner.run()
    return runner


def trained(paper):
    """The folders that were trained in, in order; and how."""
    lines = [json.loads(line) for line in (paper / 'tools/journal').read_text().splitlines()]
    return [(str(Path(line[2]).relative_to(paper / 'runs/paper_small')), line) for line in lines]


def add_rows(paper, rows):
    with open(paper / 'ablations/table.py', 'a') as file:
        file.write(f'rows.update({rows})\n')


def test_runs_go_row_by_row_seed_after_seed_and_begin_with_their_sources_checkpoint(paper):
    plan = make_plan(paper, seeds=2)
    names = [str(run.folder.relative_to(plan.root)) for run in plan.runs]
    cells = [
        'none/seed_0/pretrain',
        'none/seed_0/task',
        'full/seed_0/pretrain',
        'full/seed_0/task',
        'none-to-full/seed_0/task',  # its pre-training is that of the first row
    ]
    assert names == cells + [name.replace('seed_0', 'seed_1') for name in cells]
    late = plan.runs[4]
    assert late.source is plan.runs[0]
    command = Commands().train(late)
    assert command[:3] == [sys.executable, 'tools/train.py', f'{paper}/task.py']
    assert command[command.index('--cfg-options') + 1 :] == [
        'train_cfg.max_epochs=1',
        'randomness.seed=0',
        f'load_from={plan.root}/none/seed_0/pretrain/epoch_3.pth',
    ]
    assert Commands(gpus=8).train(late)[:3] == ['tools/dist_train.sh', f'{paper}/task.py', '8']


def test_a_stage_takes_the_keys_it_names_from_a_row(paper):
    pretrain, task = make_plan(paper, only=['none']).runs
    assert pretrain.config.model.position == dict(type='none')
    assert pretrain.config.model.heads.ace is None
    assert task.config.model.position == dict(type='none')
    assert task.config.model.heads.ace == dict(scale=2.0)


def test_a_row_may_give_another_override_to_a_stage(paper):
    override, task = (dict(model=dict(position=dict(groups=g))) for g in (2, 4))
    add_rows(paper, dict(groups=dict(override=override, stages=dict(task=task))))
    pretrain, task = make_plan(paper, only=['groups']).runs
    assert pretrain.config.model.position == dict(type='ace', groups=2)
    assert task.config.model.position == dict(type='ace', groups=4)
    assert task.folder.parts[-3:] == ('groups', 'seed_0', 'task')


def test_rows_whose_configs_equal_the_references_share_its_runs(paper):
    rows = {f'groups_{g}': dict(override=dict(model=dict(position=dict(groups=g)))) for g in (8, 4)}
    add_rows(paper, rows)
    plan = make_plan(paper, only=['full', 'groups_8', 'groups_4'])
    of_row = {row.name: plan.run_of(row, 'task', 0) for row in plan.table.rows}
    assert of_row['groups_8'] is of_row['full']
    assert of_row['groups_4'].folder.parts[-3:] == ('groups_4', 'seed_0', 'task')


def test_a_table_is_run_and_shows_measured_figures_apart_from_the_papers(paper):
    plan = make_plan(paper, seeds=2)
    assert not execute(paper, plan).failed
    assert grid(plan) == [
        ['', 'measured: score', 'measured: both', 'paper: score'],
        ['None', '61.0 ± 1.4', '63.0 ± 1.4', '70.5'],
        ['Full', '61.0 ± 1.4', '63.0 ± 1.4', '71.0'],
        ['late', '61.0 ± 1.4', '63.0 ± 1.4', '–'],
    ]
    printed = to_markdown(plan)
    assert '| None | 61.0 ± 1.4 | 63.0 ± 1.4 | 70.5 |' in printed
    assert 'measured: on a stub, mean ± standard deviation over 2 seeds' in printed


def test_a_narrow_terminal_gets_the_table_in_parts(paper, monkeypatch, capsys):
    screen = Console(width=36, force_terminal=True, color_system=None)
    monkeypatch.setattr('xmodal.ablation.report.wide_console', lambda: screen)
    print_grid(make_plan(paper))
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if line.startswith('│ None')]
    assert len(rows) == 2 and '70.5' in rows[1] and '…' not in printed
    assert max(map(len, printed.splitlines())) <= 36


def test_a_measured_run_needs_its_checkpoint_no_longer(paper):
    execute(paper, make_plan(paper))
    for checkpoint in (paper / 'runs').rglob('epoch_*.pth'):
        checkpoint.unlink()
    assert all(run.is_done for run in make_plan(paper).runs)
    before = len(trained(paper))
    (paper / 'runs/paper_small/none/seed_0/task/metrics.json').unlink()
    for file in (paper / 'runs').rglob('last_checkpoint'):
        file.unlink()
    assert not execute(paper, make_plan(paper)).failed
    again = [folder for folder, _ in trained(paper)[before:]]
    assert again == ['none/seed_0/pretrain', 'none/seed_0/task']


def add_ensemble(paper, parts="'pretrain', 'task'"):
    """Declares a stage that averages two others, and a column that shows it."""
    with open(paper / 'ablations/table.py', 'a') as file:
        file.write(f"""
presets['small']['stages']['mean'] = dict(
    config='{paper}/task.py', takes=['model.position'], ensemble=[{parts}]
)
columns = dict(small=dict(mean=('mean', 'score')))
rows.pop('late')
""")


def test_an_ensemble_is_the_test_of_its_parts_scores(paper):
    add_ensemble(paper)
    plan = make_plan(paper)
    assert not execute(paper, plan).failed
    assert [line[1] for line in grid(plan)] == ['measured: mean', '60.5', '60.5']
    assert not any(run.is_tested for run in plan.runs if not run.parts)
    pretrain, task, mean = plan.runs[:3]
    assert mean.parts == [pretrain, task] and mean.folder.parts[-3:] == ('none', 'seed_0', 'mean')
    assert len(trained(paper)) == 4  # two of each row
    assert all(run.is_done for run in make_plan(paper).runs)


def test_an_ensemble_shares_a_folder_only_with_one_of_the_same_parts(paper):
    add_ensemble(paper)
    table = paper / 'ablations/table.py'
    table.write_text(table.read_text().replace("rows.pop('late')\n", ''))
    plan = make_plan(paper)
    _, full, late = (plan.run_of(row, 'mean', 0) for row in plan.table.rows)
    assert full.folder != late.folder
    of_late = [part.folder.parts[-3:] for part in late.parts]
    assert of_late == [('none', 'seed_0', 'pretrain'), ('none-to-full', 'seed_0', 'task')]


def test_options_that_the_mean_of_scores_would_not_have_are_refused(paper):
    add_ensemble(paper)
    with open(paper / 'ablations/table.py', 'a') as file:
        file.write("presets['small']['stages']['mean']['options'] = dict(folds=5)\n")
    with pytest.raises(ValueError, match="stage mean .*'options'"):
        make_plan(paper)


def test_a_folder_that_kept_another_checkpoint_as_the_best_is_refused(paper):
    config = paper / 'pretrain.py'
    plain, keeps = config.read_text(), "default_hooks = dict(checkpoint=dict(save_best='{}'))"
    config.write_text(plain + keeps.format('score'))
    for run in make_plan(paper, only=['none']).runs:
        run.claim()
    pretrain, task = make_plan(paper, only=['none']).runs
    config.write_text(plain + keeps.format('other'))
    _variants.cache_clear()  # another process has read no config
    for run, path in zip(
        make_plan(paper, only=['none']).runs, ('', 'after pretrain.'), strict=True
    ):
        with pytest.raises(ValueError, match=rf"{path}default_hooks.checkpoint: \['score', None\]"):
            run.check()
    # A record of before says nothing of it.
    for run in (pretrain, task):
        record = json.loads(run.record_file.read_text())
        for settings in (record['settings'], record['settings'].get('after pretrain', {})):
            settings.pop('default_hooks.checkpoint', None)
        run.record_file.write_text(json.dumps(record))
        run.check()


def test_two_changes_of_one_name_are_refused(paper):
    two, four = (dict(model=dict(position=dict(groups=groups))) for groups in (2, 4))
    both = dict(override=two, stages=dict(pretrain=four))
    add_rows(paper, dict(a=both, b=dict(stages=dict(pretrain='a'))))
    with pytest.raises(ValueError, match="'b' and another one change stage pretrain differently"):
        make_plan(paper, only=['a', 'b'])


def test_rows_that_start_from_different_runs_share_none_after_them(paper):
    with open(paper / 'ablations/table.py', 'a') as file:
        file.write(f"""
presets['small']['stages']['last'] = dict(
    config='{paper}/task.py', takes=['model.position'], after='task'
)
columns = dict(small=dict(last=('last', 'score')))
""")
    early = dict(pretrain='none', task='full', last='full')
    add_rows(paper, dict(early=dict(stages=early), later=dict(stages=early | dict(task='none'))))
    make_plan(paper, only=['later'])
    with pytest.raises(
        ValueError, match="'later' and another one start before stage last diff.*none-to-full"
    ):
        make_plan(paper, only=['early', 'later'])


def test_what_a_row_changes_in_a_stage_is_taken_by_this_stage(paper):
    scale = dict(model=dict(heads=dict(ace=dict(scale=9.0))))
    add_rows(paper, dict(a=dict(stages=dict(task=scale))))
    with pytest.raises(ValueError, match=r'heads.ace.scale, which stage task does not take'):
        make_plan(paper, only=['a'])


def test_an_ensemble_has_parts_that_another_table_tested_without_scores_tested_again(paper):
    execute(paper, make_plan(paper))
    (paper / 'runs/paper_small/full/seed_0/task/scores.npz').write_text('cut short')
    (paper / 'runs/paper_small/full/seed_0/task/metrics.json').unlink()
    add_ensemble(paper)
    plan = make_plan(paper)
    assert not execute(paper, plan).failed
    assert [line[1] for line in grid(plan)] == ['measured: mean', '60.5', '60.5']
    assert len(trained(paper)) == 5  # those of the first table


@pytest.mark.parametrize(
    ('name', 'remedy'), [('metrics.json', 'delete it'), (RECORD, 'move .*/task away')]
)
def test_a_damaged_file_of_a_run_is_named_with_what_to_do(paper, name, remedy):
    execute(paper, make_plan(paper, only=['none']))
    file = paper / 'runs/paper_small/none/seed_0/task' / name
    file.write_text(file.read_text()[:9])
    with pytest.raises(FileError, match=rf'{name} is not valid JSON: .*; {remedy}'):
        plan = make_plan(paper, only=['none'])
        grid(plan)
        execute(paper, plan)


def test_a_second_test_that_is_cut_short_leaves_no_figures(paper):
    execute(paper, make_plan(paper, only=['none']))
    add_ensemble(paper)
    (paper / 'tools/test.py').write_text(TEST.replace('scores.write', 'sys.exit(1)  # '))
    plan = make_plan(paper, only=['none'])
    execute(paper, plan)
    assert not any(run.is_done for run in plan.runs)
    (paper / 'tools/test.py').write_text(TEST)
    execute(paper, plan)
    assert grid(plan)[1][1] == '60.5'


def test_an_ensemble_waits_for_no_part_that_failed(paper):
    (paper / 'tools/fail').write_text('none/seed_0/task')
    add_ensemble(paper)
    plan = make_plan(paper)
    runner = execute(paper, plan)
    assert [str(run) for run in runner.failed] == ['none, seed 0, task']
    assert [line[1] for line in grid(plan)] == ['measured: mean', '–', '60.5']


def test_an_ensemble_of_a_stage_that_is_not_there_is_named(paper):
    add_ensemble(paper, parts="'pretrain', 'tusk'")
    with pytest.raises(ValueError, match="stage that mean needs, 'tusk' is unknown, expected one"):
        read_table(paper / 'ablations/table.py')


def add_test(paper, tested='task'):
    """Declares a second test of a training, and a column that shows it."""
    with open(paper / 'ablations/table.py', 'a') as file:
        file.write(f"""
presets['small']['stages']['dev'] = dict(tests='{tested}', options=dict(model=dict(split='dev')))
columns['small']['dev'] = ('dev', 'other')
""")


def test_a_stage_may_test_the_checkpoint_of_another_one_with_other_options(paper):
    add_test(paper)
    plan = make_plan(paper)
    assert not execute(paper, plan).failed
    assert [line[3] for line in grid(plan)[1:]] == ['64.0'] * 3
    assert len(trained(paper)) == 5  # no training more
    task, dev = (plan.run_of(plan.table.rows[2], stage, 0) for stage in ('task', 'dev'))
    # The row has another override of the tested stage, which is that of its test, too.
    assert dev.folder.parts[-3:] == ('none-to-full', 'seed_0', 'dev') and dev.source is task
    assert dev.config.model.split == 'dev' and 'split' not in task.config.model
    assert dev.config.model.position == task.config.model.position
    command = Commands().test(dev)
    assert command[2:4] == [f'{paper}/task.py', f'{task.folder}/epoch_1.pth']
    assert {'model.split=dev', 'train_cfg.max_epochs=1'} <= set(command)
    assert command[command.index('--metrics') + 1] == f'{dev.folder}/metrics.json'


def test_another_test_may_have_a_config_of_its_own(paper):
    add_test(paper)
    (paper / 'probe.py').write_text(f"_base_ = '{paper}/task.py'\nprobe = True")
    table = paper / 'ablations/table.py'
    table.write_text(
        table.read_text().replace("tests='task',", f"tests='task', config='{paper}/probe.py',")
    )
    plan = make_plan(paper)
    task, dev = (plan.run_of(plan.table.rows[2], stage, 0) for stage in ('task', 'dev'))
    assert dev.config.probe and 'probe' not in task.config and dev.source is task
    assert Commands().test(dev)[2:4] == [f'{paper}/probe.py', f'{task.folder}/epoch_1.pth']


def test_a_test_whose_config_has_another_training_or_none_takes_the_model_of_its_training(paper):
    add_test(paper)
    (paper / 'probe.py').write_text("""
model = dict(position=dict(type='ace'))
train_dataloader = dict(dataset=[dict(a=1)])
""")
    table = paper / 'ablations/table.py'
    changes = """options=dict(
        model=dict(size=2), optim_wrapper=dict(dtype='bfloat16'), train_cfg=dict(max_epochs=1),
        train_dataloader=dict(dataset={'0.a': 2, '1.a': 2}))"""
    text = table.read_text().replace('options=dict(train_cfg=dict(max_epochs=1))', changes)
    table.write_text(text.replace("tests='task',", f"tests='task', config='{paper}/probe.py',"))
    config = make_plan(paper, only=['none']).runs[-1].config
    assert config.model == dict(size=2, split='dev', position=dict(type='none'))
    assert config.train_dataloader == dict(dataset=[dict(a=2)])
    assert 'train_cfg' not in config and 'optim_wrapper' not in config


def test_the_best_checkpoint_of_a_training_is_what_another_test_takes(paper):
    add_test(paper)
    plan = make_plan(paper, only=['none'])
    task, dev = plan.runs[1:]
    task.folder.mkdir(parents=True)
    (task.folder / 'best_score_epoch_1.pth').write_text('weights')
    assert dev.checkpoint == task.folder / 'best_score_epoch_1.pth'
    assert not dev.is_ready and not dev.is_done  # the training has not ended


@pytest.mark.parametrize(
    'old, new, message',
    [
        ("tests='task'", "tests='tusk'", "stage dev tests 'tusk' is unknown, expected one of pret"),
        (
            "tests='task'",
            "tests='task', takes=[]",
            "stage dev takes no key 'takes', did you mean 'tests'",
        ),
        ("task='full'", "dev='full'", "row 'late': stage 'dev' is unknown, expected one of pret"),
    ],
)
def test_a_mistake_in_a_second_test_is_named(paper, old, new, message):
    add_test(paper)
    table = paper / 'ablations/table.py'
    table.write_text(table.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        read_table(table)


def test_the_papers_figures_may_differ_by_preset(paper):
    with open(paper / 'ablations/table.py', 'a') as file:
        file.write(
            "presets['large'] = presets['small']; columns['large'] = columns['small']\n"
            "paper_columns = dict(large=['R@1', 'R@5'])\n"
            'rows = dict(full=dict(paper=dict(large=[1, 2])), none=dict())\n'
        )
    large = read_table(paper / 'ablations/table.py', 'large')
    assert large.paper_columns == ['R@1', 'R@5']
    assert [row.paper for row in large.rows] == [[1, 2], []]
    small = read_table(paper / 'ablations/table.py', 'small')
    assert small.paper_columns == [] and small.rows[0].paper == []


def test_a_second_test_cannot_be_trained(paper):
    add_test(paper)
    with pytest.raises(ConfigError, match="trains no stage 'dev', expected one of pretrain, task"):
        row_config(f'{paper}/ablations/table.py:none:dev')


def test_a_preset_that_rows_name_has_these_rows_alone(paper):
    with open(paper / 'ablations/table.py', 'a') as file:
        file.write("presets['large'] = presets['small']; columns['large'] = columns['small']\n")
    add_rows(paper, dict(more=dict(preset='large', paper=[72])))
    table = read_table(paper / 'ablations/table.py', 'large')
    assert [row.name for row in table.rows] == ['more']
    # Its configs are the method's.
    assert Plan(table, 1, paper).runs[0].folder == paper / 'paper_large/full/seed_0/pretrain'
    table = read_table(paper / 'ablations/table.py', 'small')
    assert [row.name for row in table.rows] == ['none', 'full', 'late']
    with pytest.raises(ValueError, match="row 'more' is unknown, expected one of none, full, late"):
        read_table(paper / 'ablations/table.py', only=['more'])
    add_rows(paper, dict(more=dict(preset='larger')))
    with pytest.raises(ValueError, match="row 'more': preset 'larger' is unknown, expected one of"):
        read_table(paper / 'ablations/table.py')


def test_what_is_finished_is_not_run_again(paper):
    execute(paper, make_plan(paper, only=['none']))
    execute(paper, make_plan(paper))
    folders = [folder for folder, _ in trained(paper)]
    assert len(folders) == len(set(folders)) == 5
    assert grid(make_plan(paper, seeds=2))[1][1] == '60.0 (1)'


def test_an_interrupted_training_saves_and_goes_on_later(paper):
    (paper / 'tools/interrupt').write_text('full/seed_0/pretrain')
    plan = make_plan(paper)
    stopped = execute(paper, plan)
    assert stopped.stopping and not stopped.failed
    assert [run.is_done for run in plan.runs] == [True, True, False, False, False]
    folder = plan.runs[2].folder
    assert (folder / 'last_checkpoint').read_text() == 'iter_1.pth'

    assert not execute(paper, plan).failed
    assert all(run.is_done for run in plan.runs)
    calls = [line for name, line in trained(paper) if name == 'full/seed_0/pretrain']
    assert ['--resume' in line for line in calls] == [False, True]


def test_a_training_that_ends_in_its_last_validation_is_not_finished(paper):
    (paper / 'tools/fail_in_validation').write_text('full/seed_0/pretrain')
    plan = make_plan(paper, only=['full'])
    pretrain, task = plan.runs
    assert execute(paper, plan).failed == [pretrain]
    assert pretrain.last_checkpoint.is_file() and not pretrain.is_trained
    assert not task.is_ready and not task.folder.exists()

    assert not execute(paper, plan).failed
    assert [('--resume' in line) for _, line in trained(paper)] == [False, True, False]
    assert all(run.is_done for run in plan.runs)


def test_of_two_best_checkpoints_the_later_one_counts(paper):
    run = make_plan(paper, only=['full']).runs[0]
    run.folder.mkdir(parents=True)
    for age, epoch in ((60, 10), (0, 9)):
        file = run.folder / f'best_score_epoch_{epoch}.pth'
        file.write_text('weights')
        os.utime(file, (time.time() - age,) * 2)
    assert run.checkpoint.name == 'best_score_epoch_9.pth'


def test_an_interrupted_fine_tuning_goes_on_from_its_own_checkpoint(paper):
    (paper / 'tools/interrupt').write_text('none/seed_0/task')
    plan = make_plan(paper, only=['none'])
    execute(paper, plan)
    assert not plan.runs[1].is_done
    plan.runs[1].last_checkpoint.unlink()  # of one epoch, the stub's first
    execute(paper, plan)
    resumed = trained(paper)[-1][1]
    assert plan.runs[1].is_done and '--resume' in resumed
    assert not any(argument.startswith('load_from=') for argument in resumed)


def test_what_began_with_another_pre_training_is_not_taken_for_this_one(paper):
    execute(paper, make_plan(paper, only=['none']))
    pretrain = make_plan(paper, only=['none']).runs[0]
    shutil.rmtree(pretrain.folder)
    with open(paper / 'ablations/table.py', 'a') as file:
        pretrain = "presets['small']['stages']['pretrain']"
        file.write(f"{pretrain}['options'] = {{'randomness.deterministic': True}}\n")
    with pytest.raises(ValueError, match=r'(?s)seed_0/task was made .*after pretrain.*determin'):
        execute(paper, make_plan(paper, only=['none']))


def test_checkpoints_of_nobody_knows_what_are_not_taken(paper):
    plan = make_plan(paper, only=['none'])
    plan.runs[0].folder.mkdir(parents=True)
    plan.runs[0].last_checkpoint.write_text('weights')
    with pytest.raises(ValueError, match=r'holds checkpoints, and no ablate\.json'):
        execute(paper, plan)


def test_a_failed_run_is_reported_and_the_others_go_on(paper, capsys):
    (paper / 'tools/fail').write_text('none/seed_0/pretrain')
    plan = make_plan(paper)
    runner = execute(paper, plan)
    assert [str(run) for run in runner.failed] == ['none, seed 0, pretrain']
    assert [run.is_done for run in plan.runs] == [False, False, True, True, False]
    printed = capsys.readouterr().out
    assert 'train ended with status 1' in printed and 'the sentence that says why' in printed


def test_a_run_in_other_hands_is_left_to_them(paper):
    plan = make_plan(paper, only=['none'])
    pretrain = plan.runs[0]
    with _lock(pretrain.folder) as held:
        assert held is not None

        def finish():
            pretrain.last_checkpoint.write_text('weights')

        timer = threading.Timer(0.2, finish)
        timer.start()
        execute(paper, plan)
        timer.join()
    assert [folder for folder, _ in trained(paper)] == ['none/seed_0/task']


def test_a_folder_made_with_other_settings_is_refused_with_the_keys(paper):
    plan = make_plan(paper, only=['none'])
    execute(paper, plan)
    (paper / 'pretrain2.py').write_text(CONFIG.replace('p=1', 'p=2'))
    table = paper / 'ablations/table.py'
    table.write_text(table.read_text().replace('pretrain.py', 'pretrain2.py'))
    with pytest.raises(ValueError, match=r'(?s)model\.heads\.mlm\.p: 1 there, 2 now.*move'):
        execute(paper, make_plan(paper, only=['none']))


def test_the_time_left_follows_from_what_is_done(paper):
    plan = make_plan(paper, seeds=2, only=['none'])
    assert isnan(remaining_seconds(plan.runs))
    first, task = plan.runs[:2]
    write_json(first.folder / RECORD, {'seconds': {'train': 100.0}})
    first.last_checkpoint.write_text('weights')
    write_json(task.folder / RECORD, {'seconds': {'train': 30.0, 'test': 10.0}})
    task.last_checkpoint.write_text('weights')
    assert remaining_seconds(plan.runs) == 100 + 30 + 2 * 65  # tests were never finished: the mean
    write_json(task.metrics_file, {'score': 1})
    assert remaining_seconds(plan.runs) == 100 + 30 + 10


@pytest.mark.parametrize(
    'old, new, message',
    [
        ("score=('task'", "score=('tusk'", r"stage of column 'score' 'tusk' is unknown"),
        ('paper=[70.5]', 'paper=[70.5, 1]', r"row 'none' has 2 of the paper's figures"),
        (
            "task='full'",
            "task='ful'",
            r"table\.py: row 'late': row of stage task, 'ful' is unknown, expected one of none, f",
        ),
        (
            "task='full'",
            "tusk='full'",
            r"table\.py: row 'late': stage 'tusk' is unknown, expected one of pretrain, task, unus",
        ),
        ('task.py', 'tusk.py', r'stage task names .*tusk\.py, which does not exist'),
        (
            "takes=['model'])",
            "takes=['model.heads'])",
            r"table\.py: row 'none' sets model\.position\._delete_, which no stage takes; the "
            r'stages take model\.heads, model\.neck$',
        ),
        (
            'override=dict(),',
            'variant=dict(),',
            r"table\.py: row 'late' takes no key 'variant'; it takes label, override, stages, ",
        ),
        (
            'heads=dict(ace=None)',
            'heads=dict(ace=float)',
            r"row 'none': model\.heads\.ace=<class 'float'> has no form on a command line",
        ),
        (
            'heads=dict(ace=None)',
            'heads=dict(ace={})',
            r"row 'none': model\.heads\.ace={} has no form on a command line",
        ),
        ("title = 'A table'", '', "has no 'title'"),
    ],
)
def test_a_mistake_in_a_declaration_is_named(paper, old, new, message):
    table = paper / 'ablations/table.py'
    text = table.read_text().replace(old, new)
    if 'model.heads' in new:
        text = text.replace("takes=['model.position']", "takes=['model.neck']")
    table.write_text(text)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read_table(table)


def test_a_row_may_have_strings_with_spaces_which_the_tools_read_as_they_are(paper):
    heads = {'file': 'my data/a.pth', 'files': ['b c.json', 'd.json'], 'text': "a dog's, 1"}
    add_rows(paper, {'spaces': {'override': {'model': {'position': heads}}}})
    run, _ = make_plan(paper, only=['spaces']).runs
    command = Commands().train(run)
    parser = ArgumentParser()
    add_common_arguments(parser)
    options = parser.parse_args(command[command.index('--cfg-options') :]).cfg_options
    assert {key: options[f'model.position.{key}'] for key in heads} == heads


def test_an_unknown_row_and_preset_are_named(paper):
    with pytest.raises(ValueError, match=r"row 'non' is unknown, expected one of none, full, late"):
        make_plan(paper, only=['non'])
    with pytest.raises(ValueError, match=r"preset 'large' is unknown, expected one of small"):
        read_table(paper / 'ablations/table.py', 'large')


def test_a_table_begins_with_the_first_preset_that_it_has_columns_for():
    file = Path('configs/lxmert/ablations/table3.py')
    assert list(Config.fromfile(file).presets) == ['shapes', 'full']
    assert read_table(file).preset == 'full'
    with pytest.raises(ValueError, match="preset 'shapes' is unknown, expected one of full$"):
        read_table(file, 'shapes')


def test_columns_of_a_preset_that_is_not_there_are_named(paper):
    with open(paper / 'ablations/table.py', 'a') as file:
        file.write("columns['smal'] = columns['small']\n")
    with pytest.raises(ValueError, match="preset of columns 'smal' is unknown, expected one of"):
        read_table(paper / 'ablations/table.py')


def test_a_metric_that_was_not_measured_is_named_below_the_rest_of_the_table(paper, capsys):
    plan = make_plan(paper, only=['none'])
    write_json(plan.runs[1].metrics_file, {'score': 1})
    assert grid(plan)[1] == ['None', '1.0', '–', '70.5']
    *_, below, last = to_markdown(plan).splitlines()
    assert below.startswith('measured: ')
    assert last == f"column 'both' shows score, other, and {plan.runs[1].folder} has score"
    print_grid(plan)
    assert last in capsys.readouterr().out


def test_a_test_set_without_labels_is_named(paper):
    plan = make_plan(paper, only=['none'])
    write_json(plan.runs[1].metrics_file, {})
    assert grid(plan)[1] == ['None', '–', '–', '70.5']
    assert 'has no metric: its test set has no labels' in to_markdown(plan)


@pytest.mark.parametrize('number', [1, 2, 5])
def test_the_14m_row_is_the_method_pre_trained_on_cc12m_too(number):
    table = read_table(f'configs/acerpe/ablations/table{number}.py', '14m')
    (row,) = table.rows
    config = row.config(table.stages['pretrain'])
    assert config.train_dataloader.dataset.ann_file[-1] == 'albef/cc12m.json'
    assert config.model == read_config('configs/acerpe/pretrain_14m.py').model
    less = read_table(f'configs/acerpe/ablations/table{number}.py', '4m')
    assert row.paper > less.rows[-1].paper and less.columns == table.columns


@pytest.mark.parametrize('table', ['table3', 'table4', 'table5', 'tasks', 'plugins'])
def test_lxmert_is_tested_on_the_dev_sets_of_its_paper(table):
    table = read_table(f'configs/lxmert/ablations/{table}.py', 'full')
    for column in table.columns:
        test_set = table.rows[0].config(table.stages[column.stage]).test_dataloader.dataset
        task = column.stage.split('_')[0]
        assert (
            test_set.ann_file
            == {
                'vqa': 'vqa/minival.json',
                'gqa': 'gqa/testdev_balanced_questions.json',
                'nlvr2': 'nlvr2/dev.json',
            }[task]
        )


def test_without_pre_training_lxmert_is_trained_as_the_papers_baselines():
    table = read_table('configs/lxmert/ablations/table3.py', 'full')
    for name, batch, epochs in (('vqa', 32, 4), ('vqa_alone', 64, 20), ('gqa_alone', 64, 20)):
        config = table.rows[0].config(table.stages[name])
        assert config.train_cfg.max_epochs == epochs
        assert config.train_dataloader.global_batch_size == batch
        assert config.param_scheduler[0].end == config.param_scheduler[1].begin == epochs / 10
        assert config.optim_wrapper.optimizer.lr == (1e-4 if epochs == 20 else 5e-5)


def test_a_dry_run_lists_the_commands_and_runs_nothing(paper, capsys, monkeypatch):
    arguments = [f'{paper}/ablations/table.py', '--seeds', '1', '--dry-run', '--root']
    made = []
    monkeypatch.setattr(ablate, 'Plan', lambda *args: made.append(Plan(*args)) or made[-1])
    call(monkeypatch, ablate, *arguments, f'{paper}/runs')
    assert len(made) == 1  # a second one is for --results alone
    printed = capsys.readouterr().out
    assert '# none, seed 0, pretrain\n' in printed
    assert f'tools/train.py {paper}/task.py --work-dir' in printed
    assert 'tools/test.py' in printed and '5 of 5 runs are left' in printed
    assert not (paper / 'runs').exists()


def test_a_table_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(ValueError, match=r"no table 'acerpe/table3'; there are .*acerpe/table1"):
        find_table('acerpe/table3')


@torch.no_grad()
def test_the_test_tool_writes_the_metrics_it_prints(tiny_config, tmp_path, monkeypatch):
    tiny_config.pop('work_dir')
    tiny_config.dump(tmp_path / 'tiny.py')
    weights = MODELS.build(tiny_config.model).state_dict()
    torch.save({'state_dict': weights, 'meta': {}}, tmp_path / 'weights.pth')
    arguments = [tmp_path / 'tiny.py', tmp_path / 'weights.pth', '--work-dir', tmp_path / 'run']
    arguments += ['--metrics', tmp_path / 'out/metrics.json']
    monkeypatch.setattr(sys, 'argv', ['test.py', *map(str, arguments)])
    test_tool.main()
    metrics = json.loads((tmp_path / 'out/metrics.json').read_text())
    assert {'i2t/R@1', 't2i/R@10', 'mean_recall'} <= metrics.keys()
    file = tmp_path / 'out/metrics.queries.npz'
    assert checkpoint_name(file) == 'weights.pth'
    queries, dataset = read_queries(file), DATASETS.build(tiny_config.test_dataloader.dataset)
    captions = [text for sample in dataset for text in sample['data_samples'].text]
    assert with_test_set(queries, captions) == queries and len(queries) == 4
    assert all(found.test_set for found in queries.values())


TABLES = [
    (file, preset)
    for file in sorted(Path('configs').glob('[!_]*/ablations/*.py'))
    for preset in Config.fromfile(file).columns
]


@pytest.mark.parametrize('file, preset', TABLES, ids=str)
def test_the_tables_that_come_with_the_package_are_whole(file, preset, tmp_path):
    table = read_table(file, preset)
    plan = Plan(table, 1, tmp_path)
    assert len(plan.runs) >= len(table.rows)
    assert all(run.last_checkpoint.name.startswith('epoch_') for run in plan.runs)
    for run in plan.runs:  # as tools/train.py and tools/test.py check their command lines
        check_options(run.stage.merged({}), run.options)
        check_keys(run.config)


def test_a_row_without_the_anchor_loss_keeps_the_schedule_that_names_it(tiny_config):
    table = read_table('configs/acerpe/ablations/table1.py', only=['none'])
    changes = table.stages['pretrain'].taken(table.rows[0].overrides['pretrain'])
    tiny_config.merge_from_dict(changes)
    model = MODELS.build(tiny_config.model)
    assert set(model.heads) == {'itc', 'itm', 'mlm', 'mim'}
    hook = DelayedHeadsHook(epochs=dict(ace=1, itm=1))
    runner = SimpleNamespace(cfg=tiny_config, model=model, epoch=0, max_epochs=2)
    hook.before_train(runner)
    hook.before_train_epoch(runner)
    assert model.heads.active == {'itc', 'mlm', 'mim'}
    with pytest.raises(ValueError, match=r"names \['imt'\]"):
        DelayedHeadsHook(epochs=dict(imt=1)).before_train(runner)


@pytest.mark.parametrize('number', [1, 2, 5, 6, 7, 8, 9])
def test_the_position_of_every_row_can_be_built(number):
    table = read_table(f'configs/acerpe/ablations/table{number}.py', '4m')
    stage = next(iter(table.stages.values()))
    for row in table.rows:
        position = row.config(stage).model.backbone.position
        with torch.device('meta'):
            MODELS.build({**position, 'depth': 6, 'embed_dims': 768, 'num_heads': 12})


@pytest.mark.parametrize('number', [6, 7])
def test_the_weights_that_a_row_cannot_take_from_the_stage_before_are_named(number, tiny_world):
    def build(run):
        model = deepcopy(run.config.model)
        model.data_preprocessor.tokenizer.pretrained = str(tiny_world / 'vocab.txt')
        with torch.device('meta'):
            return MODELS.build(model)

    table = read_table(f'configs/acerpe/ablations/table{number}.py', 'shapes')
    trained = [run for run in Plan(table, 1, Path('runs')).runs if run.stage.trains and run.source]
    for run in trained:
        ignored = run.config.get('load_from_ignore', [])
        load_start_weights(build(run), build(run.source).state_dict(), 'a file', ignored)
    named = {run.folder.parts[-3] for run in trained if 'load_from_ignore' in run.config}
    rows = ['shared'] if number == 6 else [f'groups_{groups}' for groups in (1, 8, 16, 32)]
    assert named == {f'ace_rpe_lace-to-{row}' for row in rows}


def test_rows_of_the_same_name_are_equal_in_all_tables_of_a_group():
    overrides = {}
    for file, preset in TABLES:
        table = read_table(file, preset)
        for row in table.rows:
            for stage in table.stages.values():
                key = table.group, preset, row.name, stage.name
                assert overrides.setdefault(key, row.options(stage)) == row.options(stage), key


def call(monkeypatch, tool, *arguments):
    monkeypatch.setattr(sys, 'argv', [tool.__name__, *map(str, arguments)])
    return tool.main()


def test_a_row_is_trained_from_the_command_line(paper, tmp_path, monkeypatch):
    built = []
    runner = SimpleNamespace(train=lambda: None)
    monkeypatch.setattr(
        'xmodal.engine.launch.build_runner', lambda config: built.append(config) or runner
    )
    monkeypatch.chdir(tmp_path)
    for name in ('pretrain', 'task'):
        with open(paper / f'{name}.py', 'a') as file:
            file.write("runner_type = 'Runner'\nresume = False\nload_from = None\n")
    row = f'{paper}/ablations/table.py:none'

    call(monkeypatch, train, '--row', row, '--cfg-options', 'train_cfg.max_epochs=2')
    config = built.pop()
    assert config.model == dict(position=dict(type='none'), heads=dict(ace=None, mlm=dict(p=1)))
    assert config.work_dir == 'work_dirs/rows/paper_small/none/pretrain'
    assert config.train_cfg.max_epochs == 2 and config.load_from is None

    message = (
        r'starts from .*none/pretrain/epoch_3\.pth, which does not exist: train stage pretrain'
    )
    with pytest.raises(ConfigError, match=message):
        call(monkeypatch, train, '--row', f'{row}:task')
    checkpoint = Path(config.work_dir, 'epoch_3.pth')
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    checkpoint.write_text('weights')
    call(monkeypatch, train, '--row', f'{row}:task', '--work-dir', tmp_path / 'run')
    config = built.pop()
    assert config.load_from == str(checkpoint) and config.work_dir == str(tmp_path / 'run')
    assert config.model.heads.ace == dict(scale=2.0) and config.train_cfg.max_epochs == 1


@pytest.mark.parametrize(
    'arguments, message',
    [
        ([], 'one of the arguments config --row is required'),
        (['a.py', '--row', 'acerpe/table1:none'], 'argument --row: not allowed with argument conf'),
        (['a.py', '--preset', '4m'], '--preset needs --row: a config file has no presets'),
    ],
)
def test_either_a_config_or_a_row_is_trained(arguments, message, monkeypatch, capsys):
    with pytest.raises(SystemExit, match='2'):
        call(monkeypatch, train, *arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    'name, message',
    [
        ('acerpe/table1', 'names no row: expected TABLE:ROW or TABLE:ROW:STAGE'),
        ('acerpe/table1:non', "row 'non' is unknown, expected one of none, ape"),
        ('acerpe/table1:none:snli_ve', "preset 'shapes' trains no stage 'snli_ve', expected one"),
        ('temde/table2:temde:sgraf_shapes', "trains no stage 'sgraf_shapes', expected one of saf"),
    ],
)
def test_a_row_that_cannot_be_trained_is_named(name, message):
    with pytest.raises(ValueError, match=message):
        row_config(name)


def test_the_first_stage_that_a_row_changes_is_trained():
    assert row_config('acerpe/table7:groups_4').work_dir.endswith('acerpe_shapes/groups_4/pretrain')
    assert row_config('acerpe/table7:groups_4', '4m').load_from is None
    config = row_config('acerpe/table1:ace_rpe_lace')  # the reference changes none
    assert config.work_dir == 'work_dirs/rows/acerpe_shapes/ace_rpe_lace/contrast'


def test_a_printed_config_is_the_rows(tmp_path, monkeypatch, capsys):
    arguments = ['acerpe/table7', '--preset', '4m', '--print-config', 'delta_0.1:coco']
    call(monkeypatch, ablate, *arguments)
    (tmp_path / 'printed.py').write_text(capsys.readouterr().out)
    printed = Config.fromfile(tmp_path / 'printed.py').to_dict()
    config = row_config('acerpe/table7:delta_0.1:coco', '4m').to_dict()
    assert printed == config
    assert list(printed['model']['heads']) == list(config['model']['heads'])
    assert printed['model']['backbone']['position']['delta'] == 0.1
    assert printed['load_from'] == 'work_dirs/rows/acerpe_4m/delta_0.1/pretrain/epoch_30.pth'


def test_options_leave_the_configs_of_other_options_as_they_are():
    stage = Stage('pretrain', 'configs/acerpe/pretrain_shapes.py', ())
    before = deepcopy(stage.content({}))
    changed = stage.merged({'param_scheduler.0.end': 7, 'model.queue_length': 7})
    assert changed.param_scheduler[0].end == changed.model.queue_length == 7
    assert stage.merged({}).to_dict() == before == stage.content({})
