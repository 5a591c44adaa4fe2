"""Region stores as sources of an index."""

import numpy as np
import pytest
import torch

from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.datasets.transforms import PackRegionText
from xmodal.search.build import _Images
from xmodal.search.sources import find_entries


def write(folder, names, sources='test', boxes=(0, 0, 8, 8)):
    with RegionStoreWriter(folder, sources) as writer:
        for name in names:
            features = np.ones((2, 3), np.float32)
            writer.append(DetectedImage(name, 16, 16, features, np.array([boxes] * 2, np.float32)))
        writer.finish()


def names(source):
    return [entry.path.rpartition('::')[2] for entry in find_entries(str(source))]


def test_random_crops_are_no_images(tmp_path):
    ids = ['a', 'a#1', 'a#2', 'b', 'b#1', 'b#2', 'no.#1']
    write(tmp_path / 'views', ids, {'views': 3})
    assert names(tmp_path / 'views') == ['a', 'b', 'no.#1']
    write(tmp_path / 'plain', ids)
    assert names(tmp_path / 'plain') == ids


def test_the_parts_that_processes_wrote_are_one_source(tmp_path):
    write(tmp_path / 'store/part_0', ['a', 'c'])
    write(tmp_path / 'store/part_1', ['b'])
    entries = find_entries(str(tmp_path / 'store'))
    assert [entry.path.rpartition('::')[2] for entry in entries] == ['a', 'c', 'b']
    assert all(len(entry.regions().features) == 2 for entry in entries)


@pytest.mark.parametrize('boxes', [(0, 0, 8, 8), (0, 0, 8, 4)])
def test_regions_with_other_boxes_are_other_content(tmp_path, boxes):
    class Pipeline:
        transforms = (PackRegionText(),)

    def read(folder, known):
        (entry,) = find_entries(str(folder))
        return _Images([entry], {entry.path: known}, Pipeline())[0]

    write(tmp_path / 'before', ['a'])
    known = read(tmp_path / 'before', None).hash
    write(tmp_path / 'after', ['a'], boxes=boxes)
    again = read(tmp_path / 'after', known)
    is_same = boxes == (0, 0, 8, 8)
    assert (again.sample is None) == is_same and (again.hash == known) == is_same
    if not is_same:
        assert torch.equal(again.sample['inputs'].boxes[:, 3], torch.tensor([0.25, 0.25]))
