"""The benchmark of region stores, with a small store."""

import sys

import pytest

from tools.analysis import benchmark_regions


@pytest.mark.skipif(sys.platform != 'linux', reason='/proc is read')
def test_the_benchmark_generates_a_store_and_measures_it(monkeypatch, tmp_path, capsys):
    arguments = '--images 12 --workers 1 --batch-size 4 --batches 3 --folder'
    monkeypatch.setattr(sys, 'argv', ['benchmark', *arguments.split(), str(tmp_path)])
    benchmark_regions.main()
    printed = capsys.readouterr().out
    assert '12 images, 1 workers, 12 reads' in printed
    assert 'memory of all processes' in printed
    assert not list(tmp_path.iterdir())
