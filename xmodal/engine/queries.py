"""Results query by query, from the metrics of an evaluation loop."""

from collections.abc import Iterable

import numpy as np
from mmengine.evaluator.metric import BaseMetric
from mmengine.runner import BaseLoop

from xmodal.engine.loops.evaluation import single_loops
from xmodal.evaluation.queries import Queries, QueryResults, named_columns
from xmodal.evaluation.task import add_prefix


def keep_queries(loop: BaseLoop) -> None:
    """Has the metrics of a loop, and of the loops in it, keep the results of each query."""
    for _, metric in _metrics(loop):
        metric.keeps_queries = True


def query_results(loop: BaseLoop) -> Queries:
    """The results of the last evaluation; empty where no metric says them query by query."""
    return join_queries(_metrics(loop))


def join_queries(metrics: Iterable[tuple[str, BaseMetric]]) -> Queries:
    """The results that metrics kept, each with what comes before its figures.

    Metrics of the same queries have their columns together. Where a metric has other queries of a
    kind than one before it, its name is added to the kind.
    """
    found: Queries = {}
    for prefix, metric in metrics:
        queries = add_prefix(getattr(metric, 'queries', {}), prefix.rstrip('/'))
        for kind, results in queries.items():
            columns = named_columns(results.columns, prefix)
            while kind in found and not _are_same(found[kind], results):
                kind = f'{kind}/{type(metric).__name__}'
            before = found[kind].columns if kind in found else {}
            found[kind] = results._replace(columns={**before, **columns})
    return found


def _are_same(one: QueryResults, other: QueryResults) -> bool:
    return np.array_equal(one.ids, other.ids) and np.array_equal(one.groups, other.groups)


def _metrics(loop: BaseLoop) -> list[tuple[str, BaseMetric]]:
    """The metrics of a loop, each with what comes before its figures in those of the loop."""
    return [(prefix, x) for prefix, part in single_loops(loop) for x in part.evaluator.metrics]
