"""Paired comparisons: the arithmetic by a literal loop, and the errors that verdicts make."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from xmodal.ablation.paired import PairedDifference, paired_difference
from xmodal.ablation.verdict import judge
from xmodal.evaluation.queries import QueryResults


def results(values, groups=None, kind='q', metric='m'):
    values = np.array(values, float)
    groups = np.arange(len(values)) if groups is None else np.array(groups)
    ids = np.arange(len(values)).astype(str)
    return {kind: QueryResults(ids, groups.astype(str), {metric: values})}


def test_the_variances_are_those_of_a_literal_loop():
    generator = np.random.default_rng(0)
    groups = [0, 0, 1, 1, 1, 2, 3, 3]
    rows = generator.normal(size=(3, 8))
    difference = paired_difference(
        [results(row, groups) for row in rows], [results(np.zeros(8), groups)] * 3, ['m']
    )
    means = [sum(row) / 8 for row in rows]
    assert difference.by_seed == pytest.approx(means)
    assert difference.mean == pytest.approx(sum(means) / 3)
    variance = 0
    for group in range(4):
        total = 0
        for query in range(8):
            if groups[query] == group:
                total += sum(rows[seed][query] - means[seed] for seed in range(3)) / 3
        variance += (total / 8) ** 2 * 4 / 3
    assert difference.query_variance == pytest.approx(variance)
    of_seeds = sum((mean - difference.mean) ** 2 for mean in means) / 2 / 3
    # Student's 97.5 % quantiles with 2 and 3 degrees of freedom, from a table.
    expected = sqrt(4.302653**2 * of_seeds + 3.182446**2 * variance)
    assert difference.half_width() == pytest.approx(expected, rel=1e-5)


def test_the_query_variance_is_that_of_a_bootstrap_over_groups():
    generator = np.random.default_rng(1)
    groups = np.repeat(np.arange(60), 5)
    values = generator.normal(size=300) + np.repeat(generator.normal(size=60), 5)
    actual = paired_difference([results(values, groups)], [results(values * 0, groups)], ['m'])
    sums = values.reshape(60, 5).mean(1)
    bootstrap = [sums[generator.integers(60, size=60)].mean() for _ in range(4000)]
    assert sqrt(actual.query_variance) == pytest.approx(np.std(bootstrap), rel=0.06)


def test_kinds_add_up_and_metrics_are_averaged():
    def both(a, b):
        return results(a, kind='i2t') | results(b, kind='t2i')

    difference = paired_difference([both([1, 3], [5, 5, 5])], [both([0, 0], [1, 1, 1])], ['m'])
    assert difference.mean == pytest.approx(2 + 4)
    one = results([10, 10])
    one['q'].columns['n'] = np.array([4.0, np.nan])  # the second query does not count
    zero = results([0, 0])
    zero['q'].columns['n'] = np.array([2.0, np.nan])
    assert paired_difference([one], [zero], ['m', 'n']).mean == pytest.approx((10 + 2) / 2)


NAN = np.nan
TWO_KINDS = results([0, 0], kind='i2t') | results([50, 50], kind='t2i')


@pytest.mark.parametrize(
    'rows, references, found',
    [
        ([results([1, 2, 3])], [results([1, 2])], "of 'q': 3 and 2 queries"),
        ([results([1, 2]), results([1])], [results([0, 0]), results([0])], '2 and 1 queries'),
        ([results([1, 3], kind='i2t')], [TWO_KINDS], 'of the queries i2t in one .* i2t, t2i in'),
        ([TWO_KINDS], [results([1, 3], kind='i2t')], 'queries i2t, t2i in one .* of i2t in'),
        ([results([1, NAN, 2])], [results([1, 2, NAN])], '2 of 3 queries count in one'),
        ([results([1, 2]), results([1, NAN])], [results([0, 0])] * 2, '1 of 2 queries count in'),
        ([results([1, NAN]), results([1, 2])], [results([0, 0])] * 2, '1 of 2 queries count in'),
        ([results([1, 2], [0, 0]), results([1, 2])], [results([0, 0])] * 2, '1 of 2 .* image or'),
    ],
)
def test_other_queries_are_refused(rows, references, found):
    with pytest.raises(ValueError, match=f"'m'.*{found}.*; test both again"):
        paired_difference(rows, references, ['m'])


def test_other_names_and_metrics_that_nothing_determines_are_refused():
    renamed = {'q': results([1, 2])['q']._replace(ids=np.array(['0', '7']))}
    with pytest.raises(ValueError, match="'m' of 'q': 1 of 2 queries have other names"):
        paired_difference([results([1, 2])], [renamed], ['m'])
    with pytest.raises(ValueError, match="do not determine 'x'"):
        paired_difference([results([1, 2])], [results([1, 2])], ['x'])
    other = [results([1, 2], metric='other')]
    for pair in ([results([1, 2])], other), (other, [results([1, 2])]):
        with pytest.raises(ValueError, match="no 'm' query by query.* query_columns .* test both"):
            paired_difference(*pair, ['m'])
    with pytest.raises(ValueError, match="'m' of 'q': no query of the test set counts"):
        paired_difference([results([NAN, NAN])], [results([NAN, NAN])], ['m'])


def test_a_level_as_small_as_that_of_a_first_look_gives_a_finite_interval():
    difference = PairedDifference(1.0, (0.5, 1.5, 1.0), 500, 1e-4, 1e-4)
    # Student's t of two degrees of freedom exceeds a large x with probability 1 / (2 x²).
    assert difference.half_width(1e-19) == pytest.approx(sqrt(1 / 1e-19 / 12), rel=1e-6)
    assert difference._replace(by_seed=(1.0, 1.0, 1.0)).half_width(1e-19) < 1


@pytest.mark.parametrize(
    'by_seed, word',
    [
        ((3.0, 3.1, 2.9), 'better'),
        ((-3.0, -3.1, -2.9), 'worse'),
        ((0.1, -0.1, 0.05), 'equivalent within 1'),
        ((2.0, 0.5, 1.0), 'undecided: about 1 more seed'),
    ],
)
def test_verdicts(by_seed, word):
    difference = PairedDifference(float(np.mean(by_seed)), by_seed, 500, 1e-4, 1e-4)
    verdict = str(judge(difference))
    assert verdict.split(':')[0] == word.split(':')[0]
    if 'more' in word:
        # The first number of seeds whose interval excludes 0, by the formula.
        deviation = np.std(by_seed, ddof=1)
        seeds = 3
        while difference.mean <= stats.t.ppf(0.975, seeds - 1) * deviation / sqrt(seeds) + 1e-3:
            seeds += 1
        assert f'about {seeds - 3} more' in verdict


def test_one_seed_and_a_small_test_set_are_undecided_for_their_own_reasons():
    assert 'one seed' in str(judge(PairedDifference(9.0, (9.0,), 500, 1e-4, 1e-4)))
    small = PairedDifference(0.5, (0.5, 0.51, 0.49), 30, 4.0, 4.0)
    assert 'larger test set' in str(judge(small))


def simulate(generator, tables, delta, of_seed, of_query, own, seeds=3, queries=40):
    """Differences d = δ + a + b + e of normal parts, with their deviations."""
    for _ in range(tables):
        a = generator.normal(scale=of_seed, size=(seeds, 1))
        b = generator.normal(scale=of_query, size=queries)
        e = generator.normal(scale=own, size=(seeds, queries))
        rows = [results(delta + row) for row in a + b + e]
        yield paired_difference(rows, [results(np.zeros(queries))] * seeds, ['m'])


@pytest.mark.parametrize(
    'of_seed, of_query, own', [(1, 0, 0), (0, 5, 0), (0, 0, 5), (1, 6, 0), (0.5, 2, 3)]
)
def test_at_most_five_per_cent_of_verdicts_on_nothing_are_false(of_seed, of_query, own):
    """Whatever part the noise comes from; 400 tables, so at most 8 % are seen (3 deviations)."""
    generator = np.random.default_rng(2)
    differences = list(simulate(generator, 400, 0.0, of_seed, of_query, own))
    found = [judge(difference).word for difference in differences]
    assert sum(word in ('better', 'worse') for word in found) / 400 <= 0.08
    # At the margin, "equivalent" is false.
    found = [
        judge(difference._replace(mean=difference.mean + 1), margin=1.0).word
        for difference in differences
    ]
    assert found.count('equivalent') / 400 <= 0.055


def test_a_difference_of_the_detectable_size_is_found_four_times_out_of_five():
    generator = np.random.default_rng(3)
    sizes = [d.detectable_at() for d in simulate(generator, 200, 0.0, 0.3, 0, 1, seeds=8)]
    delta = float(np.mean(sizes))
    found = [judge(d).word for d in simulate(generator, 400, delta, 0.3, 0, 1, seeds=8)]
    assert found.count('better') / 400 >= 0.75
