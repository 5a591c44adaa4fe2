"""The tournament, with runs that are written by the test in place of trainings."""

import runpy
import sys

import pytest
from tables_on_disk import write_row, write_table

from tools import ablate
from xmodal.ablation import Commands, Plan, Tournament, read_cells
from xmodal.ablation.spending import look_levels
from xmodal.ablation.table import _variants
from xmodal.engine.keys import ConfigError

SHIFTS = {'plain': (0, 0.2), 'idea': (5, 0.3), 'third': (0.5, 2)}
SECONDS = {'cheap': 10, 'dear': 100}


def declare(folder):
    """Two families with the same rows; the second one takes ten times as long."""
    entries = []
    for name in SECONDS:
        (folder / name).mkdir()
        file = write_table(folder / name)
        file.write_text(file.read_text().replace("group = 'group'", f"group = '{name}'"))
        columns = ['score']
        entries.append(dict(family=name, table=str(file), against='plain', columns=columns))
    file = folder / 'tournament.py'
    file.write_text(f'entries = {entries!r}\n')
    return file


@pytest.fixture
def written(tmp_path, monkeypatch):
    """The plans in the order in which they are run, and the declaration."""
    order = []

    class Writer:
        failed, stopping = [], False

        def __init__(self, plan, commands, waits):
            self.plan = plan

        def run(self):
            row = self.plan.table.rows[1].name
            order.append((self.plan.table.group, row, self.plan.seeds))
            for name in ('plain', row):
                write_row(self.plan, name, SHIFTS[name][0], deviation=SHIFTS[name][1])
            for run in self.plan.runs:
                if not run.seconds():
                    run.add_seconds('train', SECONDS[self.plan.table.group])
                    run.add_seconds('test', 0.0)

    monkeypatch.setattr('xmodal.ablation.tournament.TableRunner', Writer)
    return order, declare(tmp_path)


def play(file, root, looks):
    return Tournament(read_cells(file), looks, root, Commands(), margin=1)


def test_the_cheapest_open_cell_is_first_and_decided_ones_stop(written, tmp_path):
    order, file = written
    first = play(file, tmp_path / 'runs', [3])
    assert first.costs()[0] == float('inf')  # nothing is known before the first run
    first.run()
    order.clear()
    tournament = play(file, tmp_path / 'runs', range(3, 7))
    tournament.look()
    costs = {cell.family: [] for cell in tournament.cells}
    for index, seconds in tournament.costs().items():
        costs[tournament.cells[index].family].append(seconds)
    # Two runs a look; those of the other family are ten times as long.
    assert max(costs['cheap']) == 20 and min(costs['dear']) == 200
    tournament.run()
    families = [family for family, _, _ in order]
    assert families == sorted(families)  # all of the cheap one, then the dear one
    verdicts = {
        (cell.family, cell.table.rows[1].name): found.verdict
        for cell, found in zip(tournament.cells, tournament.found, strict=True)
    }
    for family in SECONDS:
        assert verdicts[family, 'idea'].word == 'better'
        assert len(verdicts[family, 'idea'].difference.by_seed) < 6
        assert len(verdicts[family, 'third'].difference.by_seed) == 6
    assert not tournament.open


def test_another_call_comes_to_the_same_verdicts_without_a_run(written, tmp_path):
    order, file = written
    play(file, tmp_path / 'runs', range(3, 7)).run()
    count = len(order)
    again = play(file, tmp_path / 'runs', range(3, 7))
    again.look()
    assert not again.open and len(order) == count
    assert again.lines() == play_whole(file, tmp_path)


def test_an_entry_has_a_margin_of_its_own(written, tmp_path):
    _, file = written
    entries = runpy.run_path(str(file))['entries']
    entries[0]['margin'] = 20
    file.write_text(f'entries = {entries!r}\n')
    tournament = play(file, tmp_path / 'runs', [5])
    tournament.run()
    verdicts = {
        (cell.family, cell.table.rows[1].name): str(found.verdict)
        for cell, found in zip(tournament.cells, tournament.found, strict=True)
    }
    assert verdicts['cheap', 'third'] == 'equivalent within 20'
    assert 'within 20' not in verdicts['dear', 'third']


def test_an_entry_has_looks_of_its_own(written, tmp_path):
    _, file = written
    entries = runpy.run_path(str(file))['entries']
    entries[0]['looks'] = [4, 6]
    file.write_text(f'entries = {entries!r}\n')
    tournament = play(file, tmp_path / 'runs', [3])
    tournament.run()
    seeds = {
        (cell.family, cell.table.rows[1].name): len(found.verdict.difference.by_seed)
        for cell, found in zip(tournament.cells, tournament.found, strict=True)
    }
    assert seeds == {
        ('cheap', 'idea'): 4,  # decided there
        ('cheap', 'third'): 6,
        ('dear', 'idea'): 3,
        ('dear', 'third'): 3,
    }
    index = [cell.table.rows[1].name for cell in tournament.cells].index('third')
    verdict = tournament.found[index].verdict
    assert verdict.half_width == verdict.difference.half_width(look_levels((4, 6))[1])


def test_an_entry_names_a_preset_of_its_table(tmp_path):
    file = write_table(tmp_path)
    two = "columns = dict(large={'score': ('task', 'score')}, small="
    content = file.read_text().replace('columns = dict(small=', two)
    content += "presets['large'] = dict(presets['small'], label='on a larger stub')\n"
    file.write_text(content)
    for preset in ('small', 'large'):
        entry = dict(family='a', table=str(file), preset=preset, against='plain', rows=['idea'])
        declaration = tmp_path / f'{preset}.py'
        declaration.write_text(f'entries = [{entry!r}]\n')
        assert {cell.table.preset for cell in read_cells(declaration)} == {preset}


def test_runs_that_were_made_with_other_settings_have_no_verdict(written, tmp_path):
    _, file = written
    for cell in read_cells(file):
        for run in Plan(cell.table, 3, tmp_path / 'runs').runs:
            run.claim()
    play(file, tmp_path / 'runs', [3]).run()
    config = tmp_path / 'cheap/task.py'
    config.write_text(config.read_text() + 'optimizer = 1\n')
    _variants.cache_clear()  # another process has read no config
    again = play(file, tmp_path / 'runs', [3])
    again.look()
    verdicts = {cell.family: found for cell, found in zip(again.cells, again.found, strict=True)}
    assert verdicts['dear'].verdict and not verdicts['cheap'].verdict
    assert 'optimizer: None there, 1 now' in verdicts['cheap'].reason


def test_a_cell_with_unfinished_runs_of_other_settings_leaves_the_others_running(written, tmp_path):
    order, file = written
    for cell in read_cells(file):
        for run in Plan(cell.table, 3, tmp_path / 'runs').runs:
            run.claim()
    config = tmp_path / 'cheap/task.py'
    config.write_text(config.read_text() + 'optimizer = 1\n')
    _variants.cache_clear()  # another process has read no config
    tournament = play(file, tmp_path / 'runs', [3])
    tournament.run()
    assert {group for group, _, _ in order} == {'dear'} and not tournament.open
    for cell, found in zip(tournament.cells, tournament.found, strict=True):
        assert (cell.family == 'dear') == bool(found.verdict)
        assert found.verdict or 'optimizer: None there, 1 now' in found.reason


def test_a_failed_run_closes_the_cells_that_need_it_and_is_not_tried_again(tmp_path, monkeypatch):
    file, tried = declare(tmp_path), []

    class Failing:
        stopping = False

        def __init__(self, plan, commands, waits):
            self.plan, self.failed = plan, []

        def run(self):
            tried.append(self.plan.table.group)
            self.failed = [run for run in self.plan.runs if not run.is_done][:1]

    monkeypatch.setattr('xmodal.ablation.tournament.TableRunner', Failing)
    tournament = play(file, tmp_path / 'runs', [3])
    tournament.run()
    assert sorted(tried) == ['cheap', 'dear'] and not tournament.open
    assert [str(run) for run in tournament.failed] == ['plain, seed 0, task'] * 2
    assert tournament.found == [None] * 4


def test_a_cell_that_other_processes_hold_is_left_for_the_next_one(tmp_path, monkeypatch):
    file, held, done = declare(tmp_path), {'cheap'}, []

    class Holding:
        failed, stopping = [], False

        def __init__(self, plan, commands, waits):
            assert not waits
            self.plan = plan

        def run(self):
            if self.plan.table.group not in held:
                done.append(self.plan.table.group)
                for run in self.plan.runs:
                    run.claim()
                for row in self.plan.table.rows:
                    write_row(self.plan, row.name, 0)

    monkeypatch.setattr('xmodal.ablation.tournament.TableRunner', Holding)
    monkeypatch.setattr('xmodal.ablation.tournament.time.sleep', lambda seconds: held.clear())
    tournament = play(file, tmp_path / 'runs', [3])
    tournament.run()
    assert done == ['dear', 'dear', 'cheap', 'cheap'] and not tournament.open


def test_options_of_a_single_table_are_refused(monkeypatch, capsys):
    for option, value in (('--only', 'ape'), ('--preset', '4m'), ('--print-config', 'ape')):
        monkeypatch.setattr(sys, 'argv', ['ablate.py', 'tournament', option, value])
        with pytest.raises(SystemExit):
            ablate.main()
        assert f'{option} is not for the tournament' in capsys.readouterr().err


def play_whole(file, folder):
    tournament = play(file, folder / 'runs', range(3, 7))
    tournament.run()
    return tournament.lines()


def test_the_command_prints_one_table(written, tmp_path, monkeypatch, capsys):
    _, file = written
    monkeypatch.setattr('xmodal.ablation.tournament.DECLARATION', str(file))
    monkeypatch.setattr(ablate, 'read_cells', lambda: read_cells(file))
    command = ['ablate.py', 'tournament', '--root', str(tmp_path / 'runs')]
    monkeypatch.setattr(sys, 'argv', [*command, '--dry-run'])
    ablate.main()
    assert '4 of 4 cells are open' in capsys.readouterr().out
    monkeypatch.setattr(sys, 'argv', [*command, '--until-decided', '6', '--markdown'])
    ablate.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('| family | table | plug-in | figure')
    assert (
        sum(
            line.startswith('| dear |') and '| The idea |' in line and 'better' in line
            for line in lines
        )
        == 1
    )
    assert lines[-1] == '0 of 4 cells are open'


def test_unknown_names_are_told(tmp_path):
    file = declare(tmp_path)
    text = file.read_text()
    file.write_text(text.replace("'plain'", "'plane'", 1))
    with pytest.raises(ConfigError, match=r"entries\[0\]: no 'plane' in .*: plain, idea, third"):
        read_cells(file)
    file.write_text(text.replace("'family'", "'famly'", 1))
    with pytest.raises(
        ConfigError, match=r"entries\[0\] takes no key 'famly', did you mean 'family'"
    ):
        read_cells(file)
    file.write_text(text.replace("'against': 'plain', ", '', 1))
    with pytest.raises(ConfigError, match="the key 'against' is missing"):
        read_cells(file)
    for looks in ('1, 3', '4, 3', '3, 3', '3.5,', ''):
        file.write_text(text.replace("'family'", f"'looks': [{looks}], 'family'", 1))
        with pytest.raises(ConfigError, match=r'entries\[0\]: looks=\[.*; expected ascending'):
            read_cells(file)
    file.write_text(text.replace('entries', 'entires'))
    with pytest.raises(ConfigError, match='no list `entries`'):
        read_cells(file)


def test_the_declaration_of_the_project_names_rows_that_exist():
    cells = read_cells()
    assert len({cell.family for cell in cells}) == 9
    assert all(len(cell.table.rows) == 2 and len(cell.table.columns) == 1 for cell in cells)
