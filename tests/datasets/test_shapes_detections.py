"""What the detector of the embedded world says, and its files."""

import cv2
import numpy as np
import pytest

from xmodal.datasets import PrecompDataset, RegionStore
from xmodal.datasets.region_tsv import read_region_tsv
from xmodal.datasets.shapes.detections import ATTRIBUTES, OBJECTS, label_regions
from xmodal.datasets.shapes.draw import draw_scene
from xmodal.datasets.shapes.record import Record
from xmodal.datasets.shapes.regions import FEATURE_DIMS, REGIONS, propose_regions
from xmodal.datasets.shapes.scene import sample_scene

SIZE = 96


@pytest.fixture(scope='module')
def detected():
    """For each region of 60 scenes: the thing it is meant to show, and what is said of it."""
    found = []
    for index in range(60):
        scene = sample_scene(5, 'train', index)
        _, masks = draw_scene(scene, SIZE)
        boxes = tuple(cv2.boundingRect(mask.astype(np.uint8)) for mask in masks)
        record = Record(scene, (), boxes, (), SIZE, '')
        regions = propose_regions('train', record)
        labels = label_regions('train', record, regions)
        for region, *said in zip(regions, *labels, strict=True):
            thing = None if region.thing is None else scene.things[region.thing]
            found.append((thing, *said))
    return found


def test_what_shows_a_thing_is_named_rightly_nearly_always_and_with_confidence(detected):
    shown = [row for row in detected if row[0] is not None]
    objects = [OBJECTS[row[1]] == row[0].shape for row in shown]
    attributes = [ATTRIBUTES[row[3]] == f'{row[0].texture} {row[0].colour}' for row in shown]
    for right, column in ((objects, 2), (attributes, 4)):
        assert 0.9 < np.mean(right) < 1
        confidences = np.array([row[column] for row in shown])
        assert confidences[right].min() > 0.3 > confidences[~np.array(right)].max()


def test_what_shows_no_thing_is_less_certain(detected):
    confidences = {shows: [] for shows in (True, False)}
    for thing, _, confidence, _, _ in detected:
        confidences[thing is not None].append(confidence)
    assert np.mean(confidences[True]) > np.mean(confidences[False]) + 0.3
    assert min(map(min, confidences.values())) > 0


def test_the_files_hold_every_scene_with_the_features_of_precomp_standardised(tiny_world):
    rows = np.load(tiny_world / 'precomp/train_ims.npy').reshape(-1, FEATURE_DIMS).astype(float)
    mean = rows.sum(0) / len(rows)
    deviation = np.sqrt(((rows - mean) ** 2).sum(0) / len(rows))
    deviation[deviation < 0.02] = 0.02
    store = RegionStore(tiny_world / 'regions/store')
    assert len(store) == 32 + 6 + 10 and store.feature_dims == FEATURE_DIMS
    for split, name in (('train', 'train'), ('val', 'dev'), ('test', 'test')):
        precomp = PrecompDataset(name, str(tiny_world / 'precomp'), test_mode=True)
        rows = read_region_tsv(tiny_world / f'regions/{split}_obj36.tsv', FEATURE_DIMS)
        for number, (sample, (image, _)) in enumerate(zip(precomp, rows, strict=True)):
            assert image.image_id == f'{split}_{number:06d}'
            regions, found = sample['inputs'], store[image.image_id]
            expected = (regions.features.numpy() - mean) / deviation
            assert np.allclose(image.features, expected, atol=1e-5)
            assert np.allclose(found.features, expected, atol=1e-5, rtol=1e-3)  # of float16
            assert np.allclose(found.boxes, regions.boxes)
            assert np.array_equal(found.labels.objects, image.labels.objects)


def test_the_names_of_classes_are_on_the_disk(tiny_world):
    for name, classes in (('objects', OBJECTS), ('attributes', ATTRIBUTES)):
        assert (tiny_world / f'regions/{name}_vocab.txt').read_text().split('\n')[:-1] == [*classes]
    assert (len(OBJECTS), len(ATTRIBUTES), REGIONS, FEATURE_DIMS) == (8, 48, 8, 259)
