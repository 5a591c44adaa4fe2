"""Score matrices on disk, and ensembles."""

import json
import sys

import numpy as np
import pytest

from tools.analysis import ensemble
from xmodal.evaluation import ScoreMatrix, average_scores, read_scores, write_scores
from xmodal.evaluation.queries import read_queries, with_test_set

TEXT_TO_IMAGE = np.array([0, 0, 1, 2])


def write(file, scores, captions='abcd'):
    matrix = ScoreMatrix(scores, TEXT_TO_IMAGE, np.array([7, 8, 9]), np.array(list(captions)))
    write_scores(file, matrix)
    return file


def random_scores(seed):
    return np.random.default_rng(seed).random((3, 4))


def test_a_matrix_is_read_as_it_was_written_by_the_last_validation(tmp_path):
    for seed in range(2):  # the loop refuses a file that was there before the run
        actual = read_scores(write(tmp_path / 'new/a.npz', random_scores(seed)))
        assert np.array_equal(actual.scores, random_scores(seed))
        assert actual.captions.tolist() == list('abcd')


def test_an_ensemble_ranks_by_the_mean_of_the_scores_in_double_precision(tmp_path):
    # In float32 both scores of image 0 would be 1, a tie.
    near = 1 - 1e-12
    a = np.array([[1, 0, near, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    b = np.array([[1, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    files = [write(tmp_path / f'{n}.npz', scores) for n, scores in enumerate((a, b))]
    mean = average_scores(files)
    assert np.array_equal(mean.scores, (a + b) / 2)
    assert mean.scores[0, 0] > mean.scores[0, 2]


def test_scores_of_both_directions_are_averaged_apart(tmp_path):
    ids, captions = np.array([7, 8, 9]), np.array(list('abcd'))
    for n in range(3):
        matrix = ScoreMatrix(random_scores(n), TEXT_TO_IMAGE, ids, captions)
        write_scores(
            tmp_path / f'{n}.npz', matrix._replace(t2i_scores=random_scores(10 + n) if n else None)
        )
    mean = average_scores([tmp_path / '1.npz', tmp_path / '2.npz'])
    assert np.array_equal(mean.scores, (random_scores(1) + random_scores(2)) / 2)
    assert np.array_equal(mean.t2i_scores, (random_scores(11) + random_scores(12)) / 2)
    assert np.array_equal(mean.gallery.t2i_scores, mean.t2i_scores)
    for pair in ('01', '10'):
        with pytest.raises(ValueError, match='only one was re-ranked and has t2i_scores'):
            average_scores([tmp_path / f'{n}.npz' for n in pair])


@pytest.mark.parametrize('name', ['captions', 'text_to_image', 'image_ids'])
def test_scores_of_another_test_set_are_refused(tmp_path, name):
    one = ScoreMatrix(random_scores(0), TEXT_TO_IMAGE, np.array([7, 8, 9]), np.array(list('abcd')))
    write_scores(tmp_path / 'a.npz', one)
    write_scores(tmp_path / 'b.npz', one._replace(**{name: getattr(one, name)[::-1]}))
    with pytest.raises(ValueError, match=rf'b\.npz and \S*a\.npz .* their {name} differ'):
        average_scores([tmp_path / 'a.npz', tmp_path / 'b.npz'])


def test_a_file_that_is_no_score_matrix_is_named(tmp_path):
    np.savez(tmp_path / 'a.npz', scores=random_scores(0))
    expected = r"a\.npz has no \['captions', 'image_ids', 'text_to_image'\]"
    with pytest.raises(ValueError, match=expected):
        read_scores(tmp_path / 'a.npz')


def test_the_tool_measures_the_mean_by_the_config_s_metrics(tmp_path, monkeypatch, capsys):
    a = np.array([[5, 0, 0, 9], [0, 0, 5, 0], [0, 1, 0, 5.0]])
    b = np.array([[5, 6, 0, 0], [0, 0, 5, 0], [0, 0, 0, 5.0]])
    files = [write(tmp_path / f'{n}.npz', scores) for n, scores in enumerate((a, b))]
    out, config = tmp_path / 'metrics.json', tmp_path / 'config.py'
    metrics = [
        dict(type='RetrievalMetric', prefix='all'),
        dict(type='RetrievalMetric', folds=3, prefix='thirds'),
    ]
    config.write_text(f'test_evaluator = {metrics}')
    arguments = [*files, '--metrics', out, '--config', config]
    monkeypatch.setattr(sys, 'argv', ['ensemble.py', *map(str, arguments)])
    ensemble.main()
    metrics = json.loads(out.read_text())
    # Mean of image 0: 5, 3, 0, 4.5; of caption 1: 3, 0, 0.5; of caption 3: 4.5, 0, 5.
    assert metrics['all/i2t/R@1'] == metrics['all/t2i/R@1'] == 100
    assert metrics['thirds/rsum'] == 600 and metrics['thirds/rsum_std'] == 0
    assert 'Retrieval among 3 images and 4 texts' in capsys.readouterr().out
    queries = read_queries(tmp_path / 'metrics.queries.npz')
    assert queries['all/i2t'].test_set == with_test_set(queries, 'abcd')['all/i2t'].test_set != ''


def test_a_folder_for_the_metrics_is_refused_before_anything_is_read(monkeypatch, tmp_path, capsys):
    arguments = ['none.npz', '--config', 'none.py', '--metrics', str(tmp_path)]
    monkeypatch.setattr(sys, 'argv', ['ensemble.py', *arguments])
    with pytest.raises(SystemExit):
        ensemble.main()
    assert f'--metrics {tmp_path} is a folder' in capsys.readouterr().err
