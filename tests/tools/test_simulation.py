"""A small version of tools/analysis/simulate_verdicts.py; docs/evidence.md has the full one."""

import sys

import numpy as np
import pytest

from tools.analysis import simulate_verdicts
from xmodal.ablation.simulation import mixed_rows, resampled_groups, simulated_model, split_rows
from xmodal.errors import ConfigError
from xmodal.evaluation.queries import QueryResults, figure, write_queries

IMAGES = 60


def trained_model(seed):
    """Ranks like those of one training: images differ in how hard they are, seeds in a little."""
    hard = np.random.default_rng(0).exponential(1.5, size=IMAGES)
    random = np.random.default_rng([1, seed])
    queries = {}
    for kind, texts in (('i2t', 1), ('t2i', 3)):
        images = np.repeat(np.arange(IMAGES), texts)
        ranks = 1 + random.poisson(hard[images] * random.uniform(0.8, 1.25))
        recall = sum((ranks <= k) * 100.0 for k in (1, 5, 10)) / 6
        ids = np.arange(len(images)).astype(str)
        columns = {'rank': ranks.astype(float), 'mean_recall': recall}
        queries[kind] = QueryResults(ids, images.astype(str), columns)
    return queries


def test_a_simulated_model_has_results_of_real_ones_for_the_drawn_groups():
    seeds, random = [trained_model(seed) for seed in range(3)], np.random.default_rng(0)
    groups = resampled_groups(seeds[0], random)
    assert len(groups) == IMAGES
    model = simulated_model(seeds, groups, random)
    for position, group in enumerate(groups):
        rows = model['t2i'].groups == str(position)
        real = [seed['t2i'].columns['rank'][seed['t2i'].groups == group].tolist() for seed in seeds]
        assert model['t2i'].columns['rank'][rows].tolist() in real


def test_seeds_of_which_one_has_no_scores_are_simulated_without():
    seeds, random = [trained_model(seed) for seed in range(2)], np.random.default_rng(0)
    seeds[0]['t2i'].columns['score'] = np.ones(len(seeds[0]['t2i'].ids))
    model = simulated_model(seeds, resampled_groups(seeds[0], random), random)
    assert model['t2i'].columns.keys() == {'rank', 'mean_recall'}


def model_of(figures):
    """A model whose figures for the images are given; each image is a query and a group."""
    ids = np.arange(len(figures)).astype(str)
    return {'samples': QueryResults(ids, ids, {'mean_recall': np.array(figures, float)})}


def test_mixes_of_three_models_have_two_fifths_of_their_deviation():
    """In the mean √(1 / 6); of shares that are drawn image by image √((n + 3) / n) of it."""
    models = [model_of(np.full(IMAGES, value)) for value in (-1, 0, 1)]
    random = np.random.default_rng(1)
    found = [figure(model, 'mean_recall') for model in mixed_rows(models, 500, random)[0]]
    assert np.std(found) == pytest.approx(np.sqrt((IMAGES + 3) / IMAGES / 6), rel=0.08)


def test_rows_of_real_seeds_have_each_seed_once_at_most():
    models, random = [model_of([seed]) for seed in range(7)], np.random.default_rng(0)
    splits = [split_rows(models, 3, random) for _ in range(20)]
    drawn = [[figure(model, 'mean_recall') for model in row + other] for row, other in splits]
    assert all(len(set(values)) == 6 for values in drawn)
    assert len({tuple(values) for values in drawn}) > 1 and len({*sum(drawn, [])}) == 7


def simulate(tmp_path, monkeypatch, capsys, *options, models=None):
    """The shares of verdicts that the tool prints, in percent: better, worse, equivalent."""
    models = models or [trained_model(seed) for seed in range(3)]
    files = [tmp_path / f'{seed}.npz' for seed in range(len(models))]
    for model, file in zip(models, files, strict=True):
        write_queries(file, model)
    arguments = ['simulate_verdicts.py', *map(str, files), '--tables', '120', *options]
    monkeypatch.setattr(sys, 'argv', arguments)
    simulate_verdicts.main()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if '│ ' in line]
    cells = [cell.strip(' │%') for cell in line.split('│')[2:5]]
    return [float(cell) for cell in cells]


@pytest.mark.parametrize('options', [(), ('--until-decided', '5')])
def test_few_verdicts_on_rows_that_do_not_differ_are_false(tmp_path, monkeypatch, capsys, options):
    better, worse, _ = simulate(tmp_path, monkeypatch, capsys, *options)
    assert better + worse <= 5


def test_a_large_difference_is_found(tmp_path, monkeypatch, capsys):
    assert simulate(tmp_path, monkeypatch, capsys, '--shift', '25')[0] > 90


def real_seeds():
    """Seeds of a known deviation, two points, beside which that of the queries is small."""
    random = np.random.default_rng(2)
    return [model_of(random.normal(2 * random.normal(), 0.5, size=30)) for _ in range(100)]


@pytest.mark.parametrize('options', [(), ('--until-decided', '6')])
def test_real_seeds_err_at_the_nominal_level(tmp_path, monkeypatch, capsys, options):
    options = ('--real-seeds', '--tables', '400', *options)
    better, worse, _ = simulate(tmp_path, monkeypatch, capsys, *options, models=real_seeds())
    assert better + worse == pytest.approx(5, abs=300 * np.sqrt(0.05 * 0.95 / 400))


def test_a_large_difference_of_real_seeds_is_found(tmp_path, monkeypatch, capsys):
    options = ('--real-seeds', '--shift', '25')
    assert simulate(tmp_path, monkeypatch, capsys, *options, models=real_seeds())[0] > 90


def test_too_few_real_seeds_are_refused(tmp_path, monkeypatch, capsys):
    for options in (('--seeds', '2', '4'), ('--seeds', '2', '--until-decided', '4')):
        options = ('--real-seeds', *options)
        with pytest.raises(ConfigError, match='the files of 8 seeds for two rows of 4, and 7 were'):
            simulate(tmp_path, monkeypatch, capsys, *options, models=real_seeds()[:7])


def test_a_single_result_other_queries_and_too_few_looks_are_refused(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        simulate(tmp_path, monkeypatch, capsys, '--seeds', '2', '5', '--until-decided', '5')
    assert '--until-decided MAX needs --seeds of fewer than MAX' in capsys.readouterr().err
    files = [str(tmp_path / f'{seed}.npz') for seed in range(2)]
    monkeypatch.setattr(sys, 'argv', ['simulate_verdicts.py', files[0]])
    with pytest.raises(ConfigError, match='needs the results of two seeds or more'):
        simulate_verdicts.main()
    renamed = {
        kind: queries._replace(ids=queries.ids[::-1]) for kind, queries in trained_model(1).items()
    }
    write_queries(files[1], renamed)
    monkeypatch.setattr(sys, 'argv', ['simulate_verdicts.py', *files])
    with pytest.raises(ValueError, match="'mean_recall' of 'i2t': 60 of 60 queries have other"):
        simulate_verdicts.main()
