"""What an undecided verdict expects of more seeds and of a larger test set."""

from math import sqrt

import pytest
from scipy import stats

from xmodal.ablation.paired import LEVEL, PairedDifference
from xmodal.ablation.verdict import judge


def test_a_larger_test_set_is_named_only_where_the_queries_keep_it_undecided():
    noisy_seeds = PairedDifference(1.0, (6.0, -9.0, 6.0), 500, 0.0, 0.0)
    assert str(judge(noisy_seeds)) == 'undecided: more than 100 more seeds would decide'
    # Some variance of queries is no reason as long as the interval of the queries alone decides.
    assert '100 more' in str(judge(noisy_seeds._replace(query_variance=0.2, shared_variance=0.2)))
    noisy_queries = noisy_seeds._replace(query_variance=0.3, shared_variance=0.3)
    assert str(judge(noisy_queries)).endswith('do not decide it, a larger test set would')
    # What more seeds reduce is none either: it vanishes with infinitely many.
    assert '100 more' in str(judge(noisy_queries._replace(shared_variance=0.2)))


def test_the_estimate_reaches_a_hundred_more_seeds():
    difference = PairedDifference(1.0, (6.09, -4.09, 1.0), 500, 0.0, 0.0)
    assert 97 < judge(difference).more_seeds <= 100


@pytest.mark.parametrize('mean, query_variance', [(0.8, 0.0064), (1.3, 0.16)])
def test_the_estimate_uses_the_levels_of_the_later_looks(mean, query_variance):
    looks = tuple(range(3, 9))
    levels = (0.0005, 0.003, 0.008, 0.02, 0.03, 0.04)
    by_seed = (mean - 0.5, mean + 0.5, mean)
    difference = PairedDifference(mean, by_seed, 500, query_variance, query_variance)
    later = list(zip(looks[1:], levels[1:], strict=True))
    deciding = [seeds for seeds, level in later if mean > difference.half_width(level, seeds)]
    verdict = judge(difference, 1.0, levels[0], later)
    assert verdict.more_seeds == deciding[0] - 3
    at_first = judge(difference, 1.0, levels[0])
    assert at_first.more_seeds is None or at_first.more_seeds > verdict.more_seeds
    assert verdict.half_width == at_first.half_width


def test_beyond_the_last_look_its_level_stays():
    difference = PairedDifference(1.0, (2.0, 0.0, 1.0), 500, 0.0, 0.0)
    alone = judge(difference, level=0.04).more_seeds
    assert judge(difference, level=1e-3, later=[(4, 0.01), (5, 0.04)]).more_seeds == alone > 2


def test_no_seeds_between_the_looks_are_named():
    difference = PairedDifference(1.0, (1.5, 0.5, 1.0), 500, 0.0, 0.0)
    assert judge(difference, level=1e-3, later=[(20, 0.02)]).more_seeds == 17


@pytest.mark.parametrize('level', [LEVEL, 5e-4])
def test_what_is_detectable_belongs_to_the_level_of_the_interval(level):
    verdict = judge(PairedDifference(1.0, (2.0, 0.0, 1.0), 500, 0.0, 0.0), level=level)
    quantiles = stats.t.isf(level / 2, 2) + stats.t.isf(0.2, 2)
    assert verdict.detectable == pytest.approx(quantiles / sqrt(3))
    assert verdict.detectable > verdict.half_width
