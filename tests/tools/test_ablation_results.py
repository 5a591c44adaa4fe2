"""Results in a file: they take the place of runs with the same settings, and of no others."""

import shutil
import sys
import tarfile
import threading

import numpy as np
import pytest
from tables_on_disk import make_plan, write_row, write_run, write_table

from tools import ablate
from xmodal.ablation import Plan, read_table, shared_results, unpacked_results
from xmodal.ablation.results import _locked
from xmodal.evaluation.queries import (
    QueryResults,
    checkpoint_name,
    read_queries,
    write_queries,
)
from xmodal.files import FileError, write_json


@pytest.fixture
def published(tmp_path):
    """A file with the results of two rows and two seeds; their folders are gone."""
    publish(tmp_path, 'plain', 'idea')
    return tmp_path / 'results.tar.xz'


def publish(folder, *rows, shift=5):
    plan = make_plan(folder, seeds=2)
    for run in plan.runs:
        run.claim()
        run.add_seconds('train', 60)
    for name in rows:
        write_row(plan, name, shift)
    with shared_results(plan.runs, folder / 'runs', folder / 'results.tar.xz'):
        pass
    shutil.rmtree(folder / 'runs')


def contents(file):
    with tarfile.open(file) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', ['ablate.py', *map(str, arguments)])
    ablate.main()


def test_results_of_a_file_are_printed_compared_and_not_run_again(
    published, tmp_path, monkeypatch, capsys
):
    table, root = tmp_path / 'table.py', tmp_path / 'elsewhere'
    options = ['--only', 'plain', 'idea', '--seeds', '2', '--root', root, '--results', published]
    call(monkeypatch, table, *options)  # would fail if it ran anything: the configs train nothing
    printed = capsys.readouterr().out
    assert 'The idea' in printed and '2 runs are left' not in printed
    plan = Plan(read_table(table), 2, root)
    assert [run.is_done for run in plan.runs] == [True, True, False, True, True, False]
    assert not any(run.is_trained for run in plan.runs)
    assert plan.runs[0].seconds() == {'train': 60}


def test_a_dry_run_needs_the_file(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match='none.tar.xz does not exist; expected results of'):
        call(monkeypatch, write_table(tmp_path), '--dry-run', '--results', tmp_path / 'none.tar.xz')


def test_a_dry_run_shows_the_results_and_changes_neither_folder_nor_file(
    published, tmp_path, monkeypatch, capsys
):
    table, root, before = write_table(tmp_path), tmp_path / 'runs', published.read_bytes()
    plan = Plan(read_table(table), 2, root)
    for run in plan.runs:
        run.claim()
    write_row(plan, 'third', shift=5)  # a result that the file lacks
    files = sorted(root.rglob('*'))
    call(monkeypatch, table, '--seeds', '2', '--dry-run', '--root', root, '--results', published)
    printed = capsys.readouterr().out
    assert printed.count(': done\n') == 6 and 'runs are left' not in printed
    assert 'The idea' in printed and 'undecided' in printed  # by a metric with the name `score`
    assert sorted(root.rglob('*')) == files and published.read_bytes() == before


def test_a_dry_run_names_folders_below_the_root(published, tmp_path, monkeypatch, capsys):
    table, root = tmp_path / 'table.py', tmp_path / 'runs'
    call(monkeypatch, table, '--seeds', '3', '--dry-run', '--root', root, '--results', published)
    commands = [line for line in capsys.readouterr().out.splitlines() if 'tools/' in line]
    assert len(commands) == 2 * (3 + 2)  # a row of three seeds, two rows of one
    assert all(f'{root}/group_small/' in command for command in commands)
    assert not root.exists()


def test_a_run_with_other_settings_is_left_out_and_the_key_named(published, tmp_path, capsys):
    table = write_table(tmp_path)
    table.write_text(table.read_text().replace("position='idea'", "position='another'"))
    plan = Plan(read_table(table), 1, tmp_path / 'runs')
    with shared_results(plan.runs, tmp_path / 'runs', published):
        assert [run.is_done for run in plan.runs] == [True, False, False]
    assert "model.position: 'idea' there, 'another' now" in capsys.readouterr().out


def test_scores_are_left_out_and_ranks_and_the_test_set_stay(tmp_path):
    (run,) = make_plan(tmp_path, seeds=1, only=['plain']).runs
    run.claim()
    write_run(run, [0, 100])
    columns = dict(score=np.ones(2), rank=np.ones(2), **{'vqa/overall': np.ones(2)})
    names = np.array(['0', '1'])
    written = {'vqa': QueryResults(names, names, columns, 'digest')}
    write_queries(run.queries_file, written, 'run/epoch_1.pth')
    write_json(run.metrics_file, {'vqa/overall': 1.0})
    results = tmp_path / 'results.tar.xz'
    with shared_results([run], tmp_path / 'runs', results):
        pass
    shutil.rmtree(tmp_path / 'runs')
    with unpacked_results([run], tmp_path / 'runs', results) as folder:
        file = next(folder.rglob('*.npz'))
        queries, checkpoint = read_queries(file), checkpoint_name(file)
    assert queries['vqa'].columns.keys() == {'rank', 'vqa/overall'}
    assert queries['vqa'].test_set == 'digest' and checkpoint == 'epoch_1.pth'


def test_new_results_are_added_and_the_others_stay(published, tmp_path):
    before = contents(published)
    assert len(before) == 2 * 2 * 3  # metrics, queries and record
    publish(tmp_path, 'third')
    after = contents(published)
    assert len(after) == 18 and before.items() <= after.items()


def test_results_of_several_files_are_taken_and_new_ones_go_to_the_last(published, tmp_path):
    before, other = published.read_bytes(), tmp_path / 'other.tar.xz'
    plan = make_plan(tmp_path, seeds=1, only=['plain', 'third'])
    plan.runs[-1].claim()
    write_row(plan, 'third', shift=5)
    with shared_results(plan.runs, tmp_path / 'runs', published, other):
        assert all(run.is_done for run in plan.runs)
    assert published.read_bytes() == before
    assert {name.split('/')[1] for name in contents(other)} == {'third'}


def test_of_two_files_with_results_of_a_run_the_first_counts(published, tmp_path):
    second = tmp_path / 'second.tar.xz'
    published.rename(second)
    publish(tmp_path, 'plain', shift=40)
    runs = make_plan(tmp_path, seeds=2).runs
    for share in (unpacked_results, shared_results):  # into a folder of its own, and into the root
        with share(runs, tmp_path / 'runs', published, second) as folder:
            plan = Plan(read_table(tmp_path / 'table.py'), 2, tmp_path / 'runs', folder)
            scores = {str(run): run.metrics()['score'] for run in plan.runs if run.metrics()}
        assert scores['plain, seed 0, task'] > scores['idea, seed 0, task'] + 30


def test_a_result_that_no_file_has_is_added_whatever_the_first_one_has(published, tmp_path, capsys):
    mine = tmp_path / 'mine.tar.xz'
    plan = make_plan(tmp_path, seeds=2, only=['plain'])
    for run in plan.runs:
        run.claim()
    write_row(plan, 'plain', shift=40)
    for _ in range(2):  # the second time `mine` has it
        with shared_results(plan.runs, tmp_path / 'runs', published, mine):
            pass
        assert 'not added' not in capsys.readouterr().out
    assert len(contents(mine)) == 6


def test_a_training_that_is_not_tested_yet_is_not_taken_for_another_one(
    published, tmp_path, capsys
):
    plan = make_plan(tmp_path, seeds=1, only=['plain'])
    (run,) = plan.runs
    run.claim()
    run.last_checkpoint.write_text('mine')
    with shared_results(plan.runs, tmp_path / 'runs', published):
        assert run.metrics() is None and run.seconds() == {}
    assert 'has a training of yours, not tested' in capsys.readouterr().out


def test_a_training_that_runs_without_a_checkpoint_yet_takes_no_results(
    published, tmp_path, capsys
):
    (run,) = make_plan(tmp_path, seeds=1, only=['plain']).runs
    run.claim()
    run.mark_unfinished(True)
    with shared_results([run], tmp_path / 'runs', published):
        assert run.metrics() is None
    assert 'has a training of yours, not tested' in capsys.readouterr().out


def test_a_test_of_my_training_is_not_taken_from_one_of_another_training(tmp_path, capsys):
    table, file, root = write_table(tmp_path), tmp_path / 'results.tar.xz', tmp_path / 'runs'
    text = table.read_text().replace("['model'])", "['model']), probe=dict(tests='task')")
    table.write_text(text.replace("('task', 'other')", "('probe', 'other')"))
    task, probe = Plan(read_table(table, only=['plain']), 1, root).runs
    for run in (task, probe):
        run.claim()
        write_run(run, [0, 1])
    with shared_results([task, probe], root, file):
        pass
    shutil.rmtree(root)
    assert 'plain/seed_0/probe/metrics.json' in ' '.join(contents(file))
    task.claim()
    task.last_checkpoint.write_text('mine')
    with shared_results([task, probe], root, file):
        assert probe.metrics() is None
    assert f'{probe}: {task.folder} has a training of yours' in capsys.readouterr().out


def test_the_time_of_a_training_that_others_start_from_is_published(tmp_path):
    file, root = write_table(tmp_path), tmp_path / 'runs'
    first = f"first=dict(config='{tmp_path}/task.py', takes=['model']), task=dict(after='first', "
    file.write_text(file.read_text().replace('task=dict(', first, 1))
    plan = Plan(read_table(file, only=['plain']), 1, root)
    start, task = plan.runs
    for run in plan.runs:
        run.claim()
        run.add_seconds('train', 60)
    start.last_checkpoint.write_text('weights')
    write_row(plan, 'plain', shift=5)
    results = tmp_path / 'results.tar.xz'
    with shared_results(plan.runs, root, results):
        pass
    shutil.rmtree(root)
    with unpacked_results(plan.runs, root, results) as folder:
        there = Plan(plan.table, 1, root, folder)
        assert [run.seconds() for run in there.runs] == [{'train': 60}] * 2
    with shared_results(plan.runs, root, results):
        assert start.seconds() == {'train': 60} and start.is_done and task.is_done
    shutil.rmtree(task.folder)  # what starts from it is to be done again, and so is the training
    start.claim()
    assert not start.is_done and start.seconds() == {}
    start.add_seconds('train', 5)
    with shared_results(plan.runs, root, results):  # unfinished: neither taken nor added
        assert start.seconds() == {'train': 5} and task.is_done


def test_two_processes_that_end_together_lose_nothing(tmp_path):
    plan, file = make_plan(tmp_path, seeds=1), tmp_path / 'results.tar.xz'
    for run in plan.runs:
        run.claim()
    for name in ('plain', 'idea'):
        write_row(plan, name, 0)

    def add(run):
        with shared_results([run], tmp_path / 'runs', file):
            pass

    threads = [threading.Thread(target=add, args=[run]) for run in plan.runs[:2]]
    with _locked(tmp_path):
        for thread in threads:
            thread.start()
        threads[0].join(0.5)
        assert not file.exists()  # both wait
    for thread in threads:
        thread.join()
    assert {name.split('/')[1] for name in contents(file)} == {'plain', 'idea'}


def test_a_run_that_is_there_is_not_replaced(published, tmp_path):
    plan = make_plan(tmp_path, seeds=1, only=['idea'])
    write_row(plan, 'idea', shift=40)
    mine = plan.runs[0].metrics()
    with shared_results(plan.runs, tmp_path / 'runs', published):
        assert plan.runs[0].metrics() == mine


@pytest.mark.parametrize(('shift', 'position'), [(40, 'idea'), (5, 'another')])
def test_another_result_of_a_published_run_is_named_and_not_put_in_its_place(
    shift, position, published, tmp_path, capsys
):
    before = published.read_bytes()
    table = write_table(tmp_path)
    table.write_text(table.read_text().replace("position='idea'", f"position='{position}'"))
    plan = Plan(read_table(table, only=['idea']), 2, tmp_path / 'runs')
    for run in plan.runs:
        run.claim()
    write_row(plan, 'idea', shift)
    with shared_results(plan.runs, tmp_path / 'runs', published):
        pass
    assert published.read_bytes() == before
    said = capsys.readouterr().out.splitlines()
    assert [line.split(': ')[1] for line in said] == ['idea, seed 0, task', 'idea, seed 1, task']
    assert f'{published} has another result' in said[0]


def test_the_file_is_the_same_for_the_same_results(published, tmp_path):
    before = published.read_bytes()
    published.unlink()
    publish(tmp_path, 'plain', 'idea')
    assert published.read_bytes() == before


def test_what_was_measured_before_a_failure_is_added(tmp_path):
    plan = make_plan(tmp_path, seeds=1)
    with (
        pytest.raises(KeyboardInterrupt),
        shared_results(plan.runs, tmp_path / 'runs', tmp_path / 'new.tar.xz'),
    ):
        plan.runs[0].claim()
        write_row(plan, 'plain', 0)
        raise KeyboardInterrupt
    names = contents(tmp_path / 'new.tar.xz')
    assert any(name.endswith('plain/seed_0/task/metrics.json') for name in names)


@pytest.mark.parametrize('content', [b'no zip', b''])
def test_another_file_is_refused_in_a_sentence(content, tmp_path):
    file = tmp_path / 'results.tar.xz'
    file.write_bytes(content)
    plan = make_plan(tmp_path)
    with (
        pytest.raises(FileError, match=r'results\.tar\.xz.*tools/ablate\.py --results wrote'),
        shared_results(plan.runs, tmp_path / 'runs', file),
    ):
        pass
