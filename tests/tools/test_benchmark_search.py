"""The benchmark of search: sizes that are small, or larger than a chunk."""

import sys
from argparse import Namespace

import numpy as np
import pytest

from tools.analysis import benchmark_search as tool


class Drawn(Exception):
    """Stands for what follows once the queries are drawn."""


def test_queries_may_be_more_than_a_chunk(monkeypatch, tmp_path):
    def stop(file, count, queries):
        raise Drawn(queries)

    monkeypatch.setattr(tool, 'CHUNK', 4)
    monkeypatch.setattr(tool, 'write_vectors', stop)
    with pytest.raises(Drawn) as drawn:
        tool.measure_vectors(Namespace(queries=10, width=8, count=20), tmp_path)
    (queries,) = drawn.value.args
    assert queries.shape == (10, 8)
    np.testing.assert_allclose(np.linalg.norm(queries, axis=1), 1, rtol=1e-5)


def test_the_best_ten_need_ten_vectors(monkeypatch, capsys):
    monkeypatch.setattr(sys, 'argv', ['benchmark_search.py', 'vectors', '--count', '9'])
    with pytest.raises(SystemExit):
        tool.main()
    assert '--count: expected a whole number of at least 10, got 9' in capsys.readouterr().err


def test_the_exact_best_are_those_of_all_chunks(monkeypatch, tmp_path):
    monkeypatch.setattr(tool, 'CHUNK', 16)
    queries = np.concatenate([*tool.draw(3, 8, seed=2)])
    best = tool.write_vectors(tmp_path / 'vectors.f16', 100, queries)
    rows = np.fromfile(tmp_path / 'vectors.f16', np.float16).reshape(100, 8).astype(np.float32)
    expected = np.argsort(-queries @ rows.T, axis=1)[:, :10]
    assert np.array_equal(np.sort(best), np.sort(expected))
