"""Tables of rows that do not differ, made from the real results of one config query by query."""

from collections.abc import Sequence

import numpy as np

from xmodal.evaluation.queries import Queries, QueryResults

Rows = tuple[list[Queries], list[Queries]]  # a row and its reference, each one result a seed


def mixed_rows(results: Sequence[Queries], seeds: int, generator: np.random.Generator) -> Rows:
    """Two rows of simulated models on a resampled test set.

    Mixes of K models have √((K − 1) / (K (K + 1))) of the deviation over seeds of these models,
    0.41 for three, and beside it what drawing each group by itself adds.
    """
    groups = resampled_groups(results[0], generator)
    row, reference = (
        [simulated_model(results, groups, generator) for _ in range(seeds)] for _ in range(2)
    )
    return row, reference


def split_rows(results: Sequence[Queries], seeds: int, generator: np.random.Generator) -> Rows:
    """Two rows of real models: disjoint halves of the seeds, drawn and paired at random."""
    drawn = [results[index] for index in generator.permutation(len(results))[: 2 * seeds]]
    return drawn[:seeds], drawn[seeds:]


def resampled_groups(results: Queries, generator: np.random.Generator) -> list[str]:
    """The names of as many groups of queries as there are, drawn with replacement."""
    names = sorted({name for queries in results.values() for name in queries.groups.tolist()})
    return generator.choice(names, len(names)).tolist()


def simulated_model(
    seeds: Sequence[Queries], groups: Sequence[str], generator: np.random.Generator
) -> Queries:
    """The results of a model that was never trained, on a resampled test set.

    For each group of queries it has the results of one of the real models, drawn with weights that
    are themselves drawn (Dirichlet), so that it is now nearer to one of them and now to another.

    Args:
        seeds: the results of one config with several seeds.
        groups: of :func:`resampled_groups`; a group that is drawn twice counts as two.
        generator: random numbers.
    """
    weights = generator.dirichlet(np.ones(len(seeds)))
    chosen = generator.choice(len(seeds), len(groups), p=weights)
    return {kind: _resampled([seed[kind] for seed in seeds], groups, chosen) for kind in seeds[0]}


def _resampled(
    seeds: Sequence[QueryResults], groups: Sequence[str], chosen: np.ndarray
) -> QueryResults:
    order = np.argsort(seeds[0].groups, kind='stable')
    names, starts = np.unique(seeds[0].groups[order], return_index=True)
    members = dict(zip(names.tolist(), np.split(order, starts[1:]), strict=True))
    drawn = [members.get(group, order[:0]) for group in groups]
    sizes = [len(rows) for rows in drawn]
    rows, sources = np.concatenate(drawn), np.repeat(chosen, sizes)
    columns = {
        name: np.stack([seed.columns[name] for seed in seeds])[sources, rows]
        for name in seeds[0].columns
        if all(name in seed.columns for seed in seeds)  # published results have no scores
    }
    ids = np.arange(len(rows)).astype(str)
    return QueryResults(ids, np.repeat(np.arange(len(groups)), sizes).astype(str), columns)
