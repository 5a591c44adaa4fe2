"""The base of the metrics of all tasks with one prediction per sample."""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isnan, nan
from pathlib import Path
from statistics import fmean

import numpy as np
from mmengine.dist import all_gather_object, is_main_process
from mmengine.evaluator import BaseMetric
from mmengine.logging import print_log

from xmodal.errors import ConfigError
from xmodal.evaluation.queries import DETAILS, Queries, QueryResults, named_columns, other_mean
from xmodal.files import atomic_open, require_new
from xmodal.structures import MissingFieldError


def add_prefix(metrics: dict, prefix: str | None) -> dict:
    """The metrics with ``prefix/`` in front of their names, unless the prefix is empty."""
    return {f'{prefix}/{name}' if prefix else name: value for name, value in metrics.items()}


class TaskMetric(BaseMetric):
    """Gathers the predictions of all ranks, each sample once, and scores them in one place.

    A subclass defines what is kept of a sample (``record``), how each record scores
    (``query_columns``), figures that are no means of that (``compute_metrics``), and the format of
    a submission (``submission``).

    Args:
        save_predictions: file for the predictions in the benchmark's own format; must not exist
            yet. Every evaluation of a run replaces the predictions of the previous one.

    Attributes:
        query_id: the field of a record that names its query.
        truth: the field of a sample that is empty where nobody knows what is right, as in the
            questions of a test server; None for tasks whose samples always have it.
        queries: the results of the last evaluation query by query, where ``keeps_queries`` is set.

    Raises:
        ConfigError: when the metric lacks one of these methods that it needs.
        FileExistsError: when the file exists already.
    """

    default_prefix = ''
    query_id = 'sample_index'
    truth: str | None = None
    keeps_queries = False

    def __init__(self, save_predictions: str | None = None) -> None:
        super().__init__()
        if not self._defines('record'):
            raise ConfigError(
                f'{type(self).__name__} has no method record(sample), which says what is kept of '
                'a data sample with its prediction (docs/plugins.md)'
            )
        if not self._defines('query_columns') and not self._defines('compute_metrics'):
            raise ConfigError(
                f'{type(self).__name__} has no method query_columns(records), which scores each '
                'record, nor compute_metrics(records) (docs/plugins.md)'
            )
        if save_predictions:
            if not self._defines('submission'):
                raise ConfigError(
                    f'{type(self).__name__}.save_predictions={save_predictions}: this metric '
                    'writes no predictions, it has no method submission(records)'
                )
            require_new('save_predictions', save_predictions)
        self.save_predictions = save_predictions
        self.queries: Queries = {}

    def _defines(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(TaskMetric, method)

    def record(self, sample: dict) -> dict:
        """What is kept of a data sample with its prediction."""
        raise NotImplementedError

    def submission(self, records: list[dict]) -> object:
        """The content of ``save_predictions``: a string is written as it is, the rest as JSON."""
        raise NotImplementedError

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """The results of each record, by name of the metric (:class:`QueryResults`).

        Their means, without rank and score, are figures of the metric. A verdict takes the higher
        one for the better one, and its margin is in points: give shares in percent, and an error as
        its negative.
        """
        return {}

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """The figures that are no means of ``query_columns``."""
        return {}

    def process(self, data_batch: dict | None, data_samples: Sequence[dict]) -> None:
        """Keeps the records of a batch.

        Raises:
            MissingFieldError: when a sample lacks a field that the metric reads.
        """
        if not self.results:
            self._warn_of_nothing_to_report(data_samples)
        for sample in data_samples:
            try:
                record = self.record(sample)
            except KeyError as error:
                if error.args[0] in sample:
                    raise
                raise MissingFieldError(error.args[0]) from error
            index = sample['sample_index']
            group = sample.get('image_id', sample.get('image_path', index))
            self.results.append({'sample_index': index, 'query_group': str(group), **record})

    def _warn_of_nothing_to_report(self, samples: Sequence[dict]) -> None:
        """The first samples of a set for a test server tell what hours of prediction end with."""
        if self.save_predictions or self.truth is None or any(s.get(self.truth) for s in samples):
            return
        print_log(
            f'{type(self).__name__}: the first {len(samples)} samples have no {self.truth} to '
            'compare with, and save_predictions of the evaluator names no file: if the others have '
            'none either, this evaluation reports and writes nothing. For a test server set '
            'test_evaluator.save_predictions=FILE',
            'current',
            level=logging.WARNING,
        )

    def evaluate(self, size: int) -> dict[str, float]:
        """Scores the records of all ranks; the result is the same on every rank.

        Args:
            size: number of samples of the data set.

        Raises:
            ValueError: when samples are missing, a column has no value for each of them, or the
                results that are kept query by query do not come to the figures.
        """
        gathered = [record for part in all_gather_object(self.results) for record in part]
        self.results = []
        # By sample, because a sampler may show some samples to two ranks.
        by_sample = {record['sample_index']: record for record in gathered}
        if len(by_sample) != size:
            raise ValueError(
                f'{type(self).__name__}: {len(by_sample)} predictions for {size} samples'
            )
        records = [by_sample[index] for index in sorted(by_sample)]
        if self.save_predictions and is_main_process():
            content = self.submission(records)
            with atomic_open(Path(self.save_predictions)) as output:
                output.write(content if isinstance(content, str) else json.dumps(content))
        columns = self._columns(records)
        figures = {name: column for name, column in columns.items() if name not in DETAILS}
        metrics = means(figures) | self.compute_metrics(records)
        if self.keeps_queries:
            self.queries = self._query_results(records, columns, metrics)
        return add_prefix(metrics, self.prefix)

    def _columns(self, records: list[dict]) -> dict[str, np.ndarray]:
        """``query_columns``, with a value for each record."""
        columns = {}
        for name, values in self.query_columns(records).items():
            columns[name] = np.array(values, dtype=float)
            if columns[name].shape != (len(records),):
                raise ValueError(
                    f'{self._column(name)} has {columns[name].shape} values for {len(records)} '
                    'records, expected one each: NaN for a record that does not count'
                )
        return columns

    def _query_results(
        self, records: list[dict], columns: dict[str, np.ndarray], metrics: dict[str, float]
    ) -> Queries:
        if not columns:
            return {}
        ids, groups = (
            np.array([str(record[name]) for record in records])
            for name in (self.query_id, 'query_group')
        )
        results = QueryResults(ids, groups, columns)
        if other := other_mean({'samples': results}, metrics):
            name, mean = other
            raise ValueError(
                f'{self._column(name)} has the mean {mean:g}, and compute_metrics gives '
                f'{metrics[name]:g}: return the same figure in both, in percent'
            )
        named = named_columns(columns, f'{self.prefix}/' if self.prefix else '')
        return {self.prefix or 'samples': results._replace(columns=named)}

    def _column(self, name: str) -> str:
        return f"the column '{name}' of {type(self).__name__}.query_columns"


def check_identifiers(predicted: Iterable, expected: Iterable) -> None:
    """Compares the identifiers of predictions with those of the annotations.

    Raises:
        ValueError: names some of those that are missing, unknown or given twice.
    """
    counts, expected = Counter(iter(predicted)), set(expected)  # of a mapping its keys
    problems = {
        'missing': expected - counts.keys(),
        'unknown': counts.keys() - expected,
        'given twice': {name for name, count in counts.items() if count > 1},
    }
    messages = [
        f'{len(names)} are {kind} ({", ".join(map(str, sorted(names)[:3]))}'
        f'{", …" if len(names) > 3 else ""})'
        for kind, names in problems.items()
        if names
    ]
    if messages:
        raise ValueError(f'{len(expected)} predictions expected: {"; ".join(messages)}')


def percentage(hits: Sequence[float]) -> float:
    """The mean of hits, each from 0 to 1, in percent."""
    return 100 * sum(hits) / len(hits)


def in_percent(hits: Sequence[float]) -> list[float]:
    """Hits, each from 0 to 1, in percent."""
    return [100.0 * hit for hit in hits]


def means(columns: dict[str, Sequence[float]]) -> dict[str, float]:
    """The figures that results query by query come to: the means over the queries that count.

    A column of which no query counts has no figure.
    """
    counted = {name: [x for x in column if not isnan(x)] for name, column in columns.items()}
    return {name: fmean(values) for name, values in counted.items() if values}


def details(records: list[dict]) -> dict[str, list[float]]:
    """``rank`` and ``score`` of the records, each where all of them have it."""
    return {n: [r[n] for r in records] for n in DETAILS if all(n in r for r in records)}


def where(values: Sequence[float], counts: Sequence[bool]) -> list[float]:
    """The values of the queries that count, and NaN for the others."""
    return [value if count else nan for value, count in zip(values, counts, strict=True)]
