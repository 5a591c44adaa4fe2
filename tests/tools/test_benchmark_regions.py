"""The benchmark of region stores, with a small store."""

import sys

import numpy as np
import pytest

from tools.analysis import benchmark_regions
from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.region_store import RegionStore
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.structures import ObjectLabels


@pytest.mark.skipif(sys.platform != 'linux', reason='/proc is read')
def test_the_benchmark_generates_a_store_and_measures_it(monkeypatch, tmp_path, capsys):
    arguments = '--images 12 --workers 1 --batch-size 4 --batches 3 --folder'
    monkeypatch.setattr(sys, 'argv', ['benchmark', *arguments.split(), str(tmp_path)])
    benchmark_regions.main()
    printed = capsys.readouterr().out
    assert '12 images, 1 workers, 12 reads' in printed
    assert 'memory of all processes' in printed
    assert not list(tmp_path.iterdir())


def test_the_arrays_of_an_existing_store_have_its_own_sizes(tmp_path):
    images = []
    for name, count in (('a', 3), ('b', 1)):
        numbers, shares = np.zeros(count, np.int64), np.zeros(count, np.float32)
        labels = ObjectLabels(numbers, shares, numbers, shares)
        boxes = np.tile(np.float32([0, 0, 9, 9]), (count, 1))
        features = np.ones((count, 5), np.float32)
        images.append(DetectedImage(name, 10, 10, features, boxes, labels))
    with RegionStoreWriter(tmp_path / 'store', 'test', 'float16') as writer:
        for image in images:
            writer.append(image)
        writer.finish()
    arrays = [a for image in images for a in (image.features, image.boxes, *image.labels)]
    found = benchmark_regions.bytes_in_arrays(RegionStore(tmp_path / 'store'))
    assert found == sum(array.nbytes for array in arrays)
