"""What a test found for each query, in memory and in a file beside the metrics.

A metric says it query by query, so that two models of one test set can be compared query by query
(:mod:`xmodal.ablation.comparison`): a figure of the metrics is the sum, over the kinds of queries
that have a column of its name, of the means of these columns.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xmodal.datasets.text import clean_caption
from xmodal.files import FileError, atomic_write, explain_errors
from xmodal.hashing import hash_text

DETAILS = ('rank', 'score')  # columns beside those of the figures, in units of their own
ROUNDING = 0.01  # points by which a figure may differ from the mean of what it is rounded from
SEPARATOR = '|'  # between the kind of queries and the column, in the names of the file
CHECKPOINT = 'checkpoint'  # of the file: which one was tested
_LAYOUT = 'the results of queries that tools/test.py --metrics wrote'
_DIGEST_WORDS = 10  # of each text; configs keep more


class QueryResults(NamedTuple):
    """The results of queries of one kind, such as all texts that images are searched with.

    Attributes:
        ids: names of the queries, (N,) str.
        groups: queries with the same name here are of one image or sentence, so that their results
            are not independent, (N,) str.
        columns: by name, (N,) float64; NaN where a query does not count. A column with the name of
            a metric is in percent. ``rank`` (from 1) and ``score`` are there where there are any.
        test_set: a digest of the test set, where the ids are numbers that other sets have, too; ''
            where nothing is known.
    """

    ids: np.ndarray
    groups: np.ndarray
    columns: dict[str, np.ndarray]
    test_set: str = ''


Queries = dict[str, QueryResults]  # by kind


def figure(queries: Queries, metric: str) -> float | None:
    """A metric from the results of its queries; None if they do not determine it."""
    columns = [q.columns[metric] for q in queries.values() if metric in q.columns]
    return sum(float(np.nanmean(column)) for column in columns) if columns else None


def other_mean(queries: Queries, figures: dict[str, float]) -> tuple[str, float] | None:
    """The first figure that its columns do not come to, with their mean; None if all agree.

    Figures without a column, or with one in which no query counts, agree.
    """
    for name, value in figures.items():
        columns = [q.columns[name] for q in queries.values() if name in q.columns]
        if name in DETAILS or all(np.isnan(column).all() for column in columns):
            continue
        mean = figure(queries, name)
        if abs(mean - value) > ROUNDING:
            return name, mean
    return None


def require_figures(queries: Queries, figures: dict[str, float], metric: str) -> None:
    """Checks that ``measure`` and ``measure_queries`` of a metric of retrieval agree.

    Raises:
        ValueError: names the first figure that differs, or the column that is not one of values.
    """
    for kind, results in queries.items():
        for name, values in results.columns.items():
            if np.shape(values) != results.ids.shape:
                raise ValueError(
                    f"{metric}.measure_queries: '{name}' of {kind} has the shape "
                    f'{np.shape(values)}, expected {results.ids.shape}, a value for each query'
                )
    if other := other_mean(queries, figures):
        name, mean = other
        raise ValueError(
            f"{metric}: '{name}' is {figures[name]:g} by measure, and its columns of "
            f'measure_queries have the mean {mean:g}: return the same figure in both'
        )


def with_prefix(queries: Queries, prefix: str) -> Queries:
    """The queries with ``prefix/`` before their kinds and the columns of figures, if it is set."""
    start = f'{prefix}/' if prefix else ''
    return {
        start + kind: found._replace(columns=named_columns(found.columns, start))
        for kind, found in queries.items()
    }


def named_columns(columns: dict[str, np.ndarray], start: str) -> dict[str, np.ndarray]:
    """The columns with ``start`` before the names of figures."""
    return {name if name in DETAILS else start + name: x for name, x in columns.items()}


def with_test_set(queries: Queries, texts: Sequence[str]) -> Queries:
    """The queries with a digest of the texts of their test set, if these have words."""
    # As all data sets clean them, and the first words only: how many are kept differs by config.
    lines = [clean_caption(text, _DIGEST_WORDS) for text in texts]
    digest = f'{hash_text(chr(10).join(lines)):016x}' if any(lines) else ''
    return {kind: found._replace(test_set=digest) for kind, found in queries.items()}


def queries_file(metrics_file: str | Path) -> Path:
    """The file beside ``metrics.json``: ``metrics.queries.npz``."""
    file = Path(metrics_file)
    return file.with_name(file.name.removesuffix('.json') + '.queries.npz')


def write_queries(file: str | Path, queries: Queries, checkpoint: str | None = None) -> None:
    """Writes a compressed ``.npz`` file; an existing one is replaced.

    Its arrays are ``KIND|id``, ``KIND|group`` and ``KIND|COLUMN``; and, where they are known,
    ``KIND|test_set`` and ``checkpoint``, the name of the file that was tested.
    """
    arrays = {CHECKPOINT: np.array(Path(checkpoint).name)} if checkpoint else {}
    for kind, results in queries.items():
        columns = {'id': results.ids, 'group': results.groups, **results.columns}
        if results.test_set:
            columns['test_set'] = np.array(results.test_set)
        arrays |= {f'{kind}{SEPARATOR}{name}': values for name, values in columns.items()}
    with atomic_write(Path(file)) as path, open(path, 'wb') as output:
        np.savez_compressed(output, **arrays)


def checkpoint_name(file: str | Path) -> str | None:
    """The name of the checkpoint whose results a file has; None where it does not say it."""
    with explain_errors(file, _LAYOUT), np.load(file) as content:
        return str(content[CHECKPOINT]) if CHECKPOINT in content else None


def read_queries(file: str | Path) -> Queries:
    """Reads a file of :func:`write_queries`.

    Raises:
        FileNotFoundError: when the file does not exist.
        FileError: when it has other content.
    """
    kinds: dict[str, dict[str, np.ndarray]] = {}
    with explain_errors(file, _LAYOUT), np.load(file) as content:
        for name in content:
            kind, separator, column = name.partition(SEPARATOR)
            if name == CHECKPOINT:
                continue
            if not separator:
                raise FileError(f"{file} has an array '{name}', expected {_LAYOUT}")
            kinds.setdefault(kind, {})[column] = content[name]
    queries = {}
    for kind, columns in kinds.items():
        if missing := {'id', 'group'} - columns.keys():
            raise FileError(f"{file} has no {sorted(missing)} of '{kind}', expected {_LAYOUT}")
        ids, groups = columns.pop('id'), columns.pop('group')
        queries[kind] = QueryResults(ids, groups, columns, str(columns.pop('test_set', '')))
        for name, values in columns.items():
            if values.shape != queries[kind].ids.shape:
                raise FileError(
                    f"{file} has {values.shape} values in '{kind}{SEPARATOR}{name}' for "
                    f'{queries[kind].ids.shape} queries, expected {_LAYOUT}'
                )
    return queries
