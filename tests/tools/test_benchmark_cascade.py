"""The benchmark of the cascade: both similarities, and the share of queries of the same best."""

import json
import sys

import numpy as np
import pytest

from tools.analysis import benchmark_cascade as tool
from xmodal.evaluation.scores import ScoreMatrix, write_scores

SMALL = '--images 2 --captions 3 --all-captions 5 --repeats 1'


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs the tool and returns its figures by their keys."""

    def main(*arguments):
        file = tmp_path / 'figures.json'
        monkeypatch.setattr(sys, 'argv', ['tool', *map(str, arguments), '--json', str(file)])
        tool.main()
        return {row['key']: row for row in json.loads(file.read_text())['figures']}

    return main


def test_both_similarities_are_timed(run):
    figures = run(*SMALL.split())
    assert set(figures) == {f'cascade, {name}: peer / ours' for name in ('SAF', 'SGR')}
    assert all('bar' not in figure for figure in figures.values())  # the peer is a literal loop


def test_queries_of_the_same_best_are_counted_whatever_the_order_within(run, tmp_path):
    scores = np.arange(12.0 * 24).reshape(12, 24)
    other = scores.copy()
    other[0, [22, 23]] = other[0, [23, 22]]  # the same ten texts in another order
    other[1, 0] = 1e3  # another best text of one image, and best image of one text
    for name, matrix in (('exact', scores), ('cascade', other)):
        write_scores(
            tmp_path / f'{name}.npz',
            ScoreMatrix(matrix, np.arange(24) // 2, np.arange(12), np.array(['a'] * 24)),
        )
    figures = run('--scores', tmp_path / 'exact.npz', tmp_path / 'cascade.npz')
    shares = [figures[f'{name}: queries of the same top 10'] for name in tool.DIRECTIONS]
    assert [share['value'] for share in shares] == pytest.approx([11 / 12, 23 / 24])
    assert [share['holds'] for share in shares] == [False, False]


def test_scores_of_another_test_set_are_refused(run, tmp_path):
    for name, first in (('exact', 'a'), ('cascade', 'b')):
        captions = np.array([first, *'c' * 23])
        matrix = ScoreMatrix(np.eye(12, 24), np.arange(24) // 2, np.arange(12), captions)
        write_scores(tmp_path / f'{name}.npz', matrix)
    with pytest.raises(ValueError, match='not of the same test set: their captions differ'):
        run('--scores', tmp_path / 'exact.npz', tmp_path / 'cascade.npz')
