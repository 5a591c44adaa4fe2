"""Rows against a reference, from the files of their tests to the printed verdicts."""

import sys

import pytest
from tables_on_disk import make_plan, write_row, write_table

from tools import ablate
from xmodal.ablation import compare, comparisons_to_markdown, print_comparisons, reference_row
from xmodal.engine.keys import ConfigError


@pytest.fixture
def plan(tmp_path):
    plan = make_plan(tmp_path)
    write_row(plan, 'plain', 0)
    write_row(plan, 'idea', 5)
    write_row(plan, 'third', 0)
    return plan


def verdicts(plan, reference='plain', headings=('score',), margin=1.0):
    columns = [column for column in plan.table.columns if column.heading in headings]
    found = compare(plan, reference_row(plan, reference), columns, margin)
    return {comparison.row.name: comparison for comparison in found}


def test_a_planted_difference_is_found_and_none_where_there_is_none(plan):
    found = verdicts(plan)
    assert str(found['idea'].verdict) == 'better'
    assert found['idea'].verdict.difference.mean == pytest.approx(5, abs=0.6)
    assert found['third'].verdict.word in ('equivalent', 'undecided')
    assert str(verdicts(plan, margin=3)['third'].verdict) == 'equivalent within 3'
    assert str(verdicts(plan, reference='idea')['plain'].verdict) == 'worse'


def test_only_seeds_that_both_rows_have_are_compared(plan):
    row = plan.table.rows[1]
    plan.run_of(row, 'task', 1).metrics_file.unlink()
    assert len(verdicts(plan)['idea'].verdict.difference.by_seed) == 2


def test_runs_that_were_tested_before_say_what_to_do(plan):
    run = plan.run_of(plan.table.rows[1], 'task', 1)
    run.queries_file.unlink()
    comparison = verdicts(plan)['idea']
    assert comparison.verdict is None
    assert comparison.reason.startswith(f'{run.folder} has metrics, but no metrics.queries.npz')


def test_a_row_that_shares_the_runs_of_the_reference_is_the_same(plan):
    row, reference = plan.table.rows[1], plan.table.rows[0]
    for seed in range(3):
        plan._of_row[row.name, 'task', seed] = plan.run_of(reference, 'task', seed)
    assert verdicts(plan)['idea'].reason == 'the same runs: equal configs'


def test_an_unknown_row_is_refused_and_the_first_is_the_default(plan):
    assert reference_row(plan).name == 'plain'
    with pytest.raises(ConfigError, match="no row 'nobody' here; there are plain, idea, third"):
        reference_row(plan, 'nobody')


def test_what_is_printed(plan, capsys):
    comparisons = compare(plan, plan.table.rows[0], plan.table.columns[:1], 1.0)
    print_comparisons(comparisons, plan.table.rows[0])
    printed = capsys.readouterr().out
    assert 'Against plain, query by query' in printed and 'better' in printed
    line = comparisons_to_markdown(comparisons, plan.table.rows[0]).splitlines()[4]
    assert line.startswith('| The idea | score | +')
    assert line.endswith('| 3 | better |')


def test_the_command_ends_with_the_verdicts(plan, tmp_path, monkeypatch, capsys):
    arguments = [write_table(tmp_path), '--root', tmp_path / 'runs', '--column', 'score']
    monkeypatch.setattr(sys, 'argv', ['ablate.py', *map(str, arguments)])
    for run in plan.runs:
        run.folder.joinpath('ablate.json').write_text('{"settings": null}')
    monkeypatch.setattr('xmodal.ablation.runs.Run.check', lambda run: None)
    ablate.main()
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if 'The idea' in line and 'better' in line]
    assert 'score' in line
    monkeypatch.setattr(sys, 'argv', [*sys.argv[:-1], 'nothing'])
    with pytest.raises(ConfigError, match="no column 'nothing'; there are score, other"):
        ablate.main()
