"""Two models as they are: the interval is that of Student's paired t-test over the queries.

Several seeds of two recipes: that of the tables.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from tools.analysis import compare
from xmodal.ablation.paired import paired_difference
from xmodal.ablation.verdict import judge
from xmodal.datasets.text import clean_caption
from xmodal.engine.queries import keep_queries, query_results
from xmodal.evaluation import GqaMetric, VqaMetric
from xmodal.evaluation.queries import QueryResults, with_test_set, write_queries


def results(values, groups=None):
    """Of queries that are independent, unless some are of one group."""
    ids = np.array([str(index) for index in range(len(values))])
    groups = ids if groups is None else np.array(groups)
    return {
        'q': QueryResults(ids, groups, {'m': np.array(values, float), 'rank': np.ones(len(ids))})
    }


@pytest.fixture
def two():
    draw = np.random.default_rng(0)
    return [results(100 * (draw.random(300) < share)) for share in (0.7, 0.5)]


def test_the_interval_is_that_of_the_paired_t_test(two):
    model, reference = two
    verdict = judge(paired_difference([model], [reference], ['m'])._replace(of_given=True))
    values = [queries['q'].columns['m'] for queries in two]
    interval = stats.ttest_rel(*values).confidence_interval(0.95)
    mean = verdict.difference.mean
    assert (mean - verdict.half_width, mean + verdict.half_width) == pytest.approx(interval)
    assert str(verdict) == 'better'
    same = judge(paired_difference([model], [model], ['m'])._replace(of_given=True))
    assert str(same) == 'equivalent within 1'


def test_captions_of_one_image_are_no_independent_queries():
    twice = [results(np.repeat(x, 2), np.repeat(np.arange(6), 2)) for x in ([9, 0] * 3, [0] * 6)]
    once = [results(x) for x in ([9, 0] * 3, [0] * 6)]
    doubled, single = (
        judge(paired_difference([a], [b], ['m'])._replace(of_given=True)) for a, b in (twice, once)
    )
    assert doubled.half_width == pytest.approx(single.half_width)
    assert str(single) == 'undecided: a larger test set would decide'


def test_the_tool_compares_figures_with_a_prefix_and_no_scores(tmp_path, monkeypatch, capsys):
    for name, given in (('model', 'yes'), ('reference', 'no')):
        metrics = [VqaMetric(), GqaMetric()]
        loop = SimpleNamespace(evaluator=SimpleNamespace(metrics=metrics))
        keep_queries(loop)
        samples = [
            dict(sample_index=i, question_id=i, predicted=given, top_answers=[(given, 0.5)],
                 human_answers=['yes'], answers=[('yes', 'no')[i % 2]], answer_type='')
            for i in range(4)
        ]  # fmt: skip
        for metric in metrics:
            metric.process({}, samples)
            metric.evaluate(4)
        write_queries(tmp_path / f'{name}.queries.npz', query_results(loop))
    files = [tmp_path / 'model.json', '--reference', tmp_path / 'reference.json']
    monkeypatch.setattr(sys, 'argv', ['compare.py', *map(str, files)])
    compare.main()
    printed = capsys.readouterr().out
    assert 'vqa/overall' in printed and 'gqa/accuracy' in printed and 'score' not in printed


def run_tool(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, 'argv', ['compare.py', *map(str, arguments)])
    compare.main()
    return capsys.readouterr().out


def written(folder, name, queries):
    write_queries(folder / f'{name}.queries.npz', queries)
    return folder / f'{name}.json'


def test_the_tool_prints_both_figures_and_a_verdict(two, tmp_path, monkeypatch, capsys):
    model, reference = (
        written(tmp_path, name, queries)
        for name, queries in zip(('model', 'reference'), two, strict=True)
    )
    printed = run_tool(monkeypatch, capsys, model, '--reference', reference)
    figures = [f'{queries["q"].columns["m"].mean():.1f}' for queries in two]
    assert all(figure in printed for figure in figures) and 'better' in printed
    assert 'rank' not in printed
    with pytest.raises(ValueError, match=r"--column: .*model\.json takes no key 'n'; it takes m"):
        run_tool(monkeypatch, capsys, model, '--reference', reference, '--column', 'n')


def test_other_texts_of_as_many_queries_are_refused(two, tmp_path, monkeypatch, capsys):
    """Queries of retrieval have numbers for names, which all sets of a size share."""

    def compare_two(model, reference):
        files = written(tmp_path, 'model', model), written(tmp_path, 'reference', reference)
        return run_tool(monkeypatch, capsys, files[0], '--reference', files[1])

    model, reference = two
    known = with_test_set(reference, ['A red ring - here!', 'A disc'])
    swapped = with_test_set(model, ['A disc', 'A red ring - here!'])
    with pytest.raises(ValueError, match="'m' of 'q': the test sets have other texts, .*again"):
        compare_two(swapped, known)
    assert 'better' in compare_two(with_test_set(model, ['a red ring here', 'a disc']), known)
    assert 'better' in compare_two(model, known)  # tested by an earlier version
    assert 'better' in compare_two(with_test_set(model, ['', '']), known)  # with hidden texts
    words = 'one two three four five six seven eight nine ten eleven'
    cut = clean_caption(words, 10)
    assert with_test_set(model, [words]) == with_test_set(model, [cut]) != model


def test_seeds_of_two_recipes_are_compared_seed_by_seed(tmp_path, monkeypatch, capsys):
    """As many queries that all agree: the interval is Student's over the seeds' differences."""
    draw = np.random.default_rng(0)
    figures = draw.normal(50, 3, 4), draw.normal(40, 3, 4)
    models, references = (
        [written(tmp_path, f'{name}_{i}', results([x] * 5)) for i, x in enumerate(values)]
        for name, values in zip(('model', 'reference'), figures, strict=True)
    )
    printed = run_tool(monkeypatch, capsys, *models, '--reference', *references)
    low, high = stats.ttest_rel(*figures).confidence_interval(0.95)
    assert f'{low:+.2f} … {high:+.2f}' in printed and '4 seeds' in printed
    assert f'{np.mean(figures[0]):.1f} ± {np.std(figures[0], ddof=1):.1f}' in printed
    with pytest.raises(ValueError, match='4 files of the model and 3 of --reference'):
        run_tool(monkeypatch, capsys, *models, '--reference', *references[1:])
