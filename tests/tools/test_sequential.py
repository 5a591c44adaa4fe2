"""Seeds one at a time: the published bounds, and that only undecided rows go on."""

import sys

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, t
from tables_on_disk import make_plan, write_row, write_table

from tools import ablate
from xmodal.ablation import Commands, SequentialRunner
from xmodal.ablation.paired import PairedDifference
from xmodal.ablation.spending import look_levels
from xmodal.ablation.verdict import judge


@pytest.mark.parametrize('looks', [(1, 2), (3, 4, 5), (3, 4, 6, 8), (1, 2, 3, 4, 5)])
def test_each_look_has_spent_its_share(looks):
    """By SciPy's integral over the normal distribution of the statistics of all looks so far."""
    bounds = norm.isf(np.array(look_levels(looks, 0.05)) / 2)
    for number in range(1, len(looks) + 1):
        seeds = np.array(looks[:number])
        covariance = np.sqrt(np.minimum.outer(seeds, seeds) / np.maximum.outer(seeds, seeds))
        inside = multivariate_normal(cov=covariance).cdf(
            bounds[:number], lower_limit=-bounds[:number], rng=np.random.default_rng(0)
        )
        assert 1 - inside == pytest.approx(0.05 * seeds[-1] / looks[-1], abs=2e-4)


def test_all_looks_together_spend_the_level():
    looks = tuple(range(3, 11))
    levels = look_levels(looks, 0.05)
    paths = np.random.default_rng(0).normal(size=(40000, 10)).cumsum(1)
    z = paths[:, 2:] / np.sqrt(np.arange(3, 11))
    crossed = (np.abs(z) > norm.isf(np.array(levels) / 2)).any(1)
    assert crossed.mean() == pytest.approx(0.05, abs=0.004)  # 3.6 deviations
    naive = (np.abs(z) > 1.96).any(1)
    assert naive.mean() > 0.12  # what looking without a rule costs


@pytest.mark.parametrize('level, least, most', [(0.05, 0.054, 0.062), (None, 0.043, 0.049)])
def test_with_students_t_of_few_seeds_all_looks_miss_in_five_percent(level, least, most):
    """The shares that look_levels and docs/evidence.md name, of differences with normal noise."""
    random = np.random.default_rng(0)
    for looks in (range(2, 4), range(2, 6), range(3, 9), range(3, 21)):
        missed = np.zeros(40000, bool)
        values = random.normal(size=(len(missed), looks[-1]))
        for seeds, share in zip(looks, look_levels(tuple(looks), level), strict=True):
            seen = values[:, :seeds]
            margin = t.isf(share / 2, seeds - 1) * seen.std(1, ddof=1) / np.sqrt(seeds)
            missed |= np.abs(seen.mean(1)) > margin
        assert least - 0.003 < missed.mean() < most + 0.003  # 3 deviations


def test_one_look_has_the_whole_level():
    assert look_levels((3,)) == pytest.approx((0.05,), rel=1e-4)


def test_the_first_look_decides_a_clear_difference():
    difference = PairedDifference(48.0, (45.0, 48.0, 51.0), 500, 0.5, 0.0)
    assert judge(difference, 1, look_levels(tuple(range(3, 14)))[0]).word == 'better'


@pytest.fixture
def growing(tmp_path, monkeypatch):
    """A table whose runs are written when a plan is run; and the runs of each look."""
    looks = []

    class Writer:
        failed, stopping = [], False

        def __init__(self, plan, commands):
            self.plan = plan

        def run(self):
            looks.append([row.name for row in self.plan.table.rows])
            for name, shift, deviation in (('plain', 0, 0.2), ('idea', 5, 2), ('third', 0.5, 2)):
                if name in looks[-1]:
                    write_row(self.plan, name, shift, deviation=deviation)

    monkeypatch.setattr('xmodal.ablation.sequential.TableRunner', Writer)
    return make_plan(tmp_path, seeds=2), looks


def test_decided_rows_stop_and_the_others_go_on(growing, tmp_path):
    plan, looks = growing
    runner = SequentialRunner(
        plan.table, range(3, 9), tmp_path / 'runs', Commands(), 'plain', plan.table.columns[:1], 1
    )
    found = {comparison.row.name: comparison.verdict for comparison in runner.run()}
    seeds = len(found['idea'].difference.by_seed)
    assert found['idea'].word == 'better'
    assert 3 < seeds < 8
    assert len(found['third'].difference.by_seed) == 8
    with_idea = [names for names in looks if 'idea' in names]
    assert looks == [['plain', 'idea', 'third']] * len(with_idea) + [['plain', 'third']] * (
        8 - seeds
    )
    assert runner.plan.seeds == 8


def cut_short(tmp_path, monkeypatch, at, written, stopping=True, shift=1.5):
    """The comparisons with a run that ends at a number of seeds, of which it writes some rows."""

    class Writer:
        def __init__(self, plan, commands):
            self.plan, self.ends = plan, plan.seeds == at
            self.stopping = self.ends and stopping
            self.failed = ['a run'] if self.ends and not stopping else []

        def run(self):
            for row in self.plan.table.rows:
                if not self.ends or row.name in written:
                    write_row(self.plan, row.name, shift * (row.name != 'plain'), deviation=0.3)

    monkeypatch.setattr('xmodal.ablation.sequential.TableRunner', Writer)
    table = make_plan(tmp_path, seeds=2).table
    looks, columns = range(3, 6), table.columns[:1]
    runner = SequentialRunner(table, looks, tmp_path / 'runs', Commands(), 'plain', columns, 1)
    return {comparison.row.name: comparison for comparison in runner.run()}


@pytest.mark.parametrize('stopping', [True, False])
def test_rows_that_lack_a_seed_of_a_look_keep_the_verdict_before(tmp_path, monkeypatch, stopping):
    found = cut_short(tmp_path, monkeypatch, 4, ['plain', 'idea'], stopping)
    levels = look_levels((3, 4, 5))
    for name, seeds in (('idea', 4), ('third', 3)):
        verdict = found[name].verdict
        assert len(verdict.difference.by_seed) == seeds
        assert verdict.half_width == verdict.difference.half_width(levels[seeds - 3])
    assert not found['third'].verdict.is_decided


def test_before_the_first_look_is_complete_there_is_no_verdict(tmp_path, monkeypatch):
    make_plan(tmp_path)
    found = cut_short(tmp_path, monkeypatch, 3, ['plain', 'idea'])
    assert found['idea'].verdict
    assert found['third'].verdict is None
    assert found['third'].reason == 'no seed that both rows were tested with'


def test_the_verdict_at_a_look_knows_the_later_ones(tmp_path, monkeypatch):
    found = cut_short(tmp_path, monkeypatch, 4, [], shift=2.0)
    verdict, levels = found['idea'].verdict, look_levels((3, 4, 5))
    later = [(4, levels[1]), (5, levels[2])]
    assert verdict == judge(verdict.difference, 1, levels[0], later)
    # Later looks have lower levels.
    assert verdict.more_seeds > judge(verdict.difference, 1, levels[0]).more_seeds


def test_the_command_ends_with_verdicts_and_the_number_of_seeds(
    growing, tmp_path, monkeypatch, capsys
):
    arguments = [write_table(tmp_path), '--root', tmp_path / 'runs', '--column', 'score']
    arguments += ['--seeds', '3', '--until-decided', '6']
    monkeypatch.setattr(sys, 'argv', ['ablate.py', *map(str, arguments)])
    ablate.main()
    output = capsys.readouterr().out
    assert any('The idea' in line and 'better' in line for line in output.splitlines())
    assert '6 of at most 6 seeds' in output
    monkeypatch.setattr(sys, 'argv', [*sys.argv[:-3], '6', '--until-decided', '6'])
    with pytest.raises(SystemExit):
        ablate.main()
    assert 'fewer than MAX' in capsys.readouterr().err
