"""The figure of scores by the size of the sketch, from finished runs."""

import sys

import numpy as np
import pytest

from tools.analysis import draw_sizes as tool
from xmodal.files import write_json


@pytest.fixture
def draw(tmp_path, monkeypatch):
    """Runs the tool and returns the arguments of the figure."""
    drawn = []

    def record(*arguments):
        drawn.append(arguments)
        return original(*arguments)

    original = tool.draw_sizes
    monkeypatch.setattr(tool, 'draw_sizes', record)

    def run():
        arguments = [tmp_path / 'sizes.png', '--seeds', 2, '--root', tmp_path]
        monkeypatch.setattr(sys, 'argv', ['draw_sizes.py', *map(str, arguments)])
        tool.main()
        return drawn[-1]

    return run


def finish(root, cell, seed, r1, r10=None, mrr=None):
    folder = root / f'temde_shapes/{cell}/seed_{seed}/saf_shapes'
    metrics = {'i2t/R@1': r1, 'i2t/R@10': r10, 'i2t/mrr': mrr, 't2i/R@1': -1.0, 'rsum': -1.0}
    write_json(folder / 'metrics.json', {k: v for k, v in metrics.items() if v is not None})


def test_a_cell_is_the_mean_over_the_finished_seeds_of_its_size(draw, tmp_path):
    finish(tmp_path, 'n20_k8', 0, 73.0, 97.0, 82.0)
    finish(tmp_path, 'n20_k8', 1, 74.0, 98.0, 85.0)
    finish(tmp_path, 'n8_k20', 1, 75.0, 96.0, 83.0)
    finish(tmp_path, 'temde', 0, 76.0, 95.0)  # the reference, n16_k8, by a test without MRR
    panels, partitions, centroids = draw()
    assert (partitions, centroids) == ([20, 16, 8], [8, 20])
    expected = {
        'TR@1': [[73.5, np.nan], [76.0, np.nan], [np.nan, 75.0]],
        'TR@10': [[97.5, np.nan], [95.0, np.nan], [np.nan, 96.0]],
        'MRR': [[83.5, np.nan], [np.nan, np.nan], [np.nan, 83.0]],
    }
    assert list(panels) == list(expected)
    for name, cells in expected.items():
        np.testing.assert_array_equal(panels[name], cells)
    assert (tmp_path / 'sizes.png').read_bytes().startswith(b'\x89PNG')


def test_without_finished_runs_the_error_names_the_command(draw):
    with pytest.raises(FileNotFoundError, match='run `xmodal ablate temde/table4`'):
        draw()
