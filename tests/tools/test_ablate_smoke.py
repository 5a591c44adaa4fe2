"""Every table at the papers' scale, trained and tested tiny, on files as docs/data.md has them."""

import itertools
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmark_files import write_benchmarks
from mmengine.config import Config
from tiny_models import tiny_options, write_weights

from xmodal.ablation import (
    Commands,
    Plan,
    TableRunner,
    find_table,
    grid,
    missing_by_stage,
    read_table,
    runner,
)
from xmodal.ablation.report import MISSING, not_measured

ROOT = Path.cwd()
# The tables by paper and preset.
TABLES: dict[tuple[str, str], list[str]] = {}
for file in sorted(Path('configs').glob('[!_]*/ablations/*.py')):
    paper = file.parent.parent.name
    for preset in Config.fromfile(file).columns:
        if preset != 'shapes':
            TABLES.setdefault((paper, preset), []).append(f'{paper}/{file.stem}')
# The row that is run: the last one, which is the method and shares its runs between tables, but for
# these. Those in the second line have trainings of their own.
ROWS = {'acerpe/table7': 'lambda_2', 'temde/table4': 'n16_k8', 'lxmert/plugins': 'full'}
ROWS |= {'acerpe/finetune_only': 'finetuned', 'temde/dual': 'dual_emde', 'lxmert/table3': 'bert'}
# What ACE-RPE is measured on, by the beginning of a column's heading.
TEST_SETS = {
    'F30K': 'karpathy/dataset_flickr30k.json',
    'COCO': 'karpathy/dataset_coco.json',
    'mean recall': 'karpathy/dataset_coco.json',
    'VQA val': 'vqa/v2_OpenEnded_mscoco_val2014_questions.json',
    'SNLI-VE dev': 'snli_ve/snli_ve_dev.jsonl',
    'SNLI-VE test': 'snli_ve/snli_ve_test.jsonl',
    'NLVR2 dev': 'nlvr2/dev.json',
    'NLVR2 test': 'nlvr2/test1.json',
    'val': 'refcoco+/refs(unc).p',
    'testA': 'refcoco+/refs(unc).p',
    'testB': 'refcoco+/refs(unc).p',
}


@pytest.fixture(scope='module')
def benchmarks(tmp_path_factory, tiny_world):
    """A folder to work in, with all that the configs name, of drawn scenes."""
    folder = tmp_path_factory.mktemp('benchmarks')
    write_benchmarks(folder / 'data', tiny_world)
    write_weights(folder, tiny_world / 'vocab.txt')
    (folder / 'configs').symlink_to(ROOT / 'configs')
    return folder


@pytest.fixture
def in_this_process(monkeypatch):
    """Has the commands of a table run in this process, which has imported everything."""
    numbers = itertools.count()

    def call(command, **_):
        script = Path(command[1]).relative_to(ROOT).with_suffix('')
        tool = import_module('.'.join(script.parts))
        if '--cfg-options' in command:  # the loggers of one process need names
            command = [*command, f'experiment_name=smoke_{next(numbers)}']
        monkeypatch.setattr(sys, 'argv', command[1:])
        tool.main()
        return SimpleNamespace(wait=lambda _: 0, poll=lambda: 0)

    monkeypatch.setattr(runner, 'subprocess', SimpleNamespace(Popen=call, STDOUT=None))


def read_tiny(name, preset):
    """A table of one row, tiny."""
    file = find_table(name)
    row = ROWS.get(name) or read_table(file, preset).rows[-1].name
    table = read_table(file, preset, [row])
    stages = {
        stage.name: stage._replace(options=stage.options | tiny_options(stage.merged({})))
        for stage in table.stages.values()
    }
    return table._replace(stages=stages)


# 14m is 4m with another pre-training, of more files; on features of photographs
# tests/engine/test_dual_photographs.py trains. NLVR's rows are built in test_lxmert_runs.py.
NOT_RUN = ('14m', 'flickr8k', 'flickr8k_coco', 'nlvr1')


@pytest.mark.parametrize('paper, preset', [key for key in TABLES if key[1] not in NOT_RUN])
def test_every_column_of_a_table_at_the_papers_scale_is_measured(
    paper, preset, benchmarks, in_this_process, monkeypatch
):
    monkeypatch.chdir(benchmarks)
    for name in TABLES[paper, preset]:
        plan = Plan(read_tiny(name, preset), 1, Path('runs'))
        assert missing_by_stage(plan) == {}, name
        TableRunner(plan, Commands()).run()
        assert not_measured(plan) == [], name
        (row,) = grid(plan)[1:]
        assert MISSING not in row[1 : 1 + len(plan.table.columns)], name


@pytest.mark.parametrize('paper, preset', TABLES)
def test_a_stage_starts_from_the_one_that_its_config_starts_from(paper, preset):
    for name in TABLES[paper, preset]:
        stages = read_table(find_table(name), preset).stages
        for stage in filter(lambda stage: stage.trains and stage.after, stages.values()):
            source = stages[stage.after]
            work_dir = f'work_dirs/{Path(source.config).stem.replace("14m", "4m")}'
            expected = source.merged({}).get('work_dir', work_dir)
            loaded = Path(stage.merged(stage.options).load_from)
            assert str(loaded.parent) == expected, f'{name}: {stage.name}'


@pytest.mark.parametrize('preset', ['4m', '14m'])
def test_ace_rpe_is_tested_on_what_its_columns_name(preset):
    for name in TABLES['acerpe', preset]:
        table = read_table(find_table(name), preset)
        for column in table.columns:
            (expected,) = (
                file for key, file in TEST_SETS.items() if column.heading.startswith(key)
            )
            test_set = table.rows[0].config(table.stages[column.stage]).test_dataloader.dataset
            assert test_set.ann_file == expected, f'{name}: {column.heading}'
