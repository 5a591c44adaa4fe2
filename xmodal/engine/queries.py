"""Results query by query, from the metrics of an evaluation loop."""

from collections.abc import Iterator

from mmengine.evaluator.metric import BaseMetric
from mmengine.runner import BaseLoop

from xmodal.evaluation.queries import Queries
from xmodal.evaluation.task import add_prefix


def keep_queries(loop: BaseLoop) -> None:
    """Has the metrics of a loop, and of the loops in it, keep the results of each query."""
    for _, metric in _metrics(loop):
        metric.keeps_queries = True


def query_results(loop: BaseLoop) -> Queries:
    """The results of the last evaluation; empty where no metric says them query by query."""
    return {
        kind: results._replace(
            columns={
                name if name in ('rank', 'score') else f'{prefix}{name}': values
                for name, values in results.columns.items()
            }
        )
        for prefix, metric in _metrics(loop)
        for kind, results in add_prefix(getattr(metric, 'queries', {}), prefix.rstrip('/')).items()
    }


def _metrics(loop: BaseLoop) -> Iterator[tuple[str, BaseMetric]]:
    """The metrics of a loop, each with what comes before its figures in those of the loop."""
    if inner := getattr(loop, 'loops', None):
        for name, part in inner.items():
            for prefix, metric in _metrics(part):
                yield f'{name}/{prefix}', metric
    else:
        for metric in loop.evaluator.metrics:
            yield '', metric
