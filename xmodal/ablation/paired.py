"""The difference of two rows, query by query and seed by seed, with its interval.

Two things are random: the training, of which there are a few seeds, and the queries, of which the
test set has many. The difference of seed s at query q is d_sq = δ + a_s + b_q + e_sq. Of the mean
difference

* S² / n, from the n differences of the seeds, estimates the variance of a_s and e_sq, with n − 1
  degrees of freedom;
* V, from the means over seeds of each group of queries, estimates that of b_q and e_sq. It is what
  a bootstrap over groups converges to (Efron and Tibshirani 1993, Sec. 5.2), without its noise.

The interval is d ± √(t²(n − 1) S² / n + t²(G − 1) V): the margins of the two parts, each with its
own quantile, added in quadrature (the MOVER of Zou and Donner, Statistics in Medicine 27, 2008).
e_sq is in both, so the interval is rather too wide than too narrow, as that of a bootstrap over
both (Owen, Annals of Applied Statistics 1, 2007). A percentile bootstrap over three seeds is far
too narrow: it knows nothing of Student's t, and has 10 different samples.
"""

from collections.abc import Sequence
from functools import cache
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy import stats

from xmodal.evaluation.queries import Queries, QueryResults

LEVEL = 0.05  # share of intervals that do not hold the true difference
POWER = 0.8
_AGAIN = 'test both again on one test set (tools/ablate.py does so without their metrics.json)'


class PairedDifference(NamedTuple):
    """A row's figure minus the reference's, in points.

    Attributes:
        mean: over the seeds.
        by_seed: the difference of each seed.
        groups: number of independent groups of queries, such as images.
        query_variance: V, the part of the mean's variance that is due to the choice of queries.
        shared_variance: the part of V that more seeds do not reduce.
        of_given: both models are as they are, and no other seeds are asked about: the interval is
            that of other queries alone.
    """

    mean: float
    by_seed: tuple[float, ...]
    groups: int
    query_variance: float
    shared_variance: float
    of_given: bool = False

    def half_width(self, level: float = LEVEL, seeds: float | None = None) -> float:
        """Half of the interval's width; infinite for one seed, unless the models are given.

        Args:
            level: share of intervals that miss the true difference.
            seeds: as it would be with another number of seeds of the same deviation; ``inf`` for
                the part that is due to the queries alone.
        """
        return self._margin(lambda dof: _upper_quantile(level / 2, dof), seeds)

    def detectable_at(self, level: float = LEVEL) -> float:
        """The least true difference that the interval excludes 0 for, four times out of five."""
        return self._margin(
            lambda dof: _upper_quantile(level / 2, dof) + _upper_quantile(1 - POWER, dof)
        )

    def _margin(self, factor, seeds: float | None = None) -> float:
        n = len(self.by_seed)
        if self.of_given:
            return factor(self.groups - 1) * sqrt(self.query_variance)
        if n < 2:
            return inf
        m = seeds or n
        own = (self.query_variance - self.shared_variance) * n / m
        of_seeds = factor(m - 1) ** 2 * np.var(self.by_seed, ddof=1) / m
        of_queries = factor(self.groups - 1) ** 2 * (self.shared_variance + own)
        return sqrt(of_seeds + of_queries)


def paired_difference(
    rows: Sequence[Queries], references: Sequence[Queries], metrics: Sequence[str]
) -> PairedDifference:
    """Compares a row with the reference.

    Args:
        rows: the results of the row's queries, one a seed.
        references: those of the reference with the same seeds.
        metrics: names of metrics; the figure is their mean.

    Raises:
        ValueError: when the queries of two results differ, or do not determine a metric.
    """
    require_same_queries([*rows, *references], metrics)
    pairs = zip(rows, references, strict=True)
    by_seed = [_influences(row, reference, metrics) for row, reference in pairs]
    figures = [figure for figure, _ in by_seed]
    groups = sorted(by_seed[0][1])
    influences = np.array([[parts[group] for group in groups] for _, parts in by_seed])
    n, g = influences.shape
    if g < 2:
        raise ValueError(
            'all queries are of one group: there is nothing to estimate a deviation by'
        )
    correction = g / (g - 1)
    of_mean = correction * float((influences.mean(0) ** 2).sum())
    of_one = correction * float((influences**2).sum(1).mean())
    shared = (n * of_mean - of_one) / (n - 1) if n > 1 else of_mean
    return PairedDifference(
        float(np.mean(figures)), tuple(figures), g, of_mean, min(max(shared, 0.0), of_mean)
    )


def _influences(
    row: Queries, reference: Queries, metrics: Sequence[str]
) -> tuple[float, dict[str, float]]:
    """The difference of a seed, and how much each group of queries moves it, by group."""
    figure, parts = 0.0, {}
    for metric in metrics:
        for kind in _kinds(row, metric):
            ours, theirs = row[kind], reference[kind]
            values = (ours.columns[metric] - theirs.columns[metric]) / len(metrics)
            counts = ~np.isnan(values)
            values, groups = values[counts], ours.groups[counts]
            mean = float(values.mean())
            figure += mean
            names, index = np.unique(groups, return_inverse=True)
            sums = np.bincount(index, (values - mean) / len(values))
            for name, part in zip(names.tolist(), sums.tolist(), strict=True):
                parts[name] = parts.get(name, 0.0) + part
    return figure, parts


def _kinds(queries: Queries, metric: str) -> list[str]:
    """The kinds of queries that a metric is the sum over."""
    return sorted(kind for kind in queries if metric in queries[kind].columns)


def require_same_queries(results: Sequence[Queries], metrics: Sequence[str]) -> None:
    """Checks that the results are of the same queries, in the same groups.

    Only then is d_sq there for every seed and query.

    Raises:
        ValueError: with the metric and what differs.
    """
    first, *others = results
    for metric in metrics:
        kinds = _kinds(first, metric)
        for other in others:
            if (found := _kinds(other, metric)) != kinds:
                if not kinds or not found:
                    raise ValueError(
                        f"one result has no '{metric}' query by query, and another does: is it in "
                        f'query_columns of the metrics of both? If so, {_AGAIN}'
                    )
                ours, theirs = (', '.join(one) for one in (kinds, found))
                raise ValueError(
                    f"'{metric}' is of the queries {ours} in one result, and of {theirs} in "
                    f'another; {_AGAIN}'
                )
            for kind in kinds:
                if unlike := _unlike(first[kind], other[kind], metric):
                    raise ValueError(f"'{metric}' of '{kind}': {unlike}; {_AGAIN}")
        if not kinds:
            raise ValueError(f"the results of the queries do not determine '{metric}'")
        for kind in kinds:
            if np.isnan(first[kind].columns[metric]).all():
                raise ValueError(f"'{metric}' of '{kind}': no query of the test set counts")


def _unlike(one: QueryResults, other: QueryResults, metric: str) -> str:
    """What differs in the queries of two results; empty where nothing does."""
    if len(one.ids) != len(other.ids):
        return f'{len(one.ids)} and {len(other.ids)} queries'
    if one.test_set and other.test_set and one.test_set != other.test_set:
        return 'the test sets have other texts, or in another order'
    for what, ours, theirs in (
        ('have other names', one.ids, other.ids),
        ('are of another image or sentence', one.groups, other.groups),
        ('count in one result only', *(np.isnan(q.columns[metric]) for q in (one, other))),
    ):
        if differ := int((ours != theirs).sum()):
            return f'{differ} of {len(ours)} queries {what}'
    return ''


@cache
def _upper_quantile(share: float, dof: float) -> float:
    """What Student's t exceeds with this probability, be it as small as that of a first look."""
    return float(stats.t.isf(share, dof))
