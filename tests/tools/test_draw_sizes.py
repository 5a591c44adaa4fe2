"""The figure of a score by the size of the sketch, from finished runs."""

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


def finish(root, cell, seed, rsum):
    folder = root / f'temde_shapes/{cell}/seed_{seed}/saf_shapes'
    write_json(folder / 'metrics.json', {'rsum': rsum, 'i2t/R@1': 1.0})


def test_a_cell_is_the_mean_over_the_finished_seeds_of_its_size(draw, tmp_path):
    finish(tmp_path, 'n20_k8', 0, 300.0)
    finish(tmp_path, 'n20_k8', 1, 310.0)
    finish(tmp_path, 'n8_k20', 1, 290.0)
    finish(tmp_path, 'temde', 0, 320.0)  # the reference; its sizes are those of n16_k8
    cells, partitions, centroids = draw()
    assert (partitions, centroids) == ([20, 16, 8], [8, 20])
    expected = [[305, np.nan], [320, np.nan], [np.nan, 290]]
    np.testing.assert_array_equal(cells, expected)
    assert (tmp_path / 'sizes.png').read_bytes().startswith(b'\x89PNG')


def test_without_finished_runs_the_error_names_the_command(draw):
    with pytest.raises(FileNotFoundError, match='run `python tools/ablate.py temde/table4`'):
        draw()
