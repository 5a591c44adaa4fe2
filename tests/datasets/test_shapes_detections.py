"""The detector of the embedded world, and its files."""

import json

import cv2
import numpy as np
import pytest
from shown_objects import make_record, shown_objects

from xmodal.datasets import PrecompDataset, RegionStore
from xmodal.datasets.region_tsv import read_region_tsv
from xmodal.datasets.shapes.detections import ATTRIBUTES, OBJECTS, label_regions
from xmodal.datasets.shapes.regions import FEATURE_DIMS, REGIONS, describe_regions, propose_regions
from xmodal.datasets.shapes.render import render_scene
from xmodal.datasets.shapes.skills import generate_pairs


@pytest.fixture(scope='module')
def detected():
    """For each region of 60 scenes: the object that it shows, and its labels."""
    detections = []
    for index in range(60):
        record = make_record(index)
        regions = propose_regions('train', record)
        labels = label_regions('train', record, regions)
        for shown, *region_labels in zip(shown_objects(record, regions), *labels, strict=True):
            obj = None if shown is None else record.scene.objects[shown]
            detections.append((obj, *region_labels))
    return detections


def test_regions_of_objects_are_nearly_always_labelled_correctly_and_with_confidence(detected):
    shown = [row for row in detected if row[0] is not None]
    objects = [OBJECTS[row[1]] == row[0].shape for row in shown]
    attributes = [ATTRIBUTES[row[3]] == f'{row[0].texture} {row[0].colour}' for row in shown]
    for is_correct, column in ((objects, 2), (attributes, 4)):
        assert 0.9 < np.mean(is_correct) < 1
        confidences = np.array([row[column] for row in shown])
        assert confidences[is_correct].min() > 0.3 > confidences[~np.array(is_correct)].max()


def test_regions_without_an_object_have_lower_confidences(detected):
    confidences = {has_object: [] for has_object in (True, False)}
    for obj, _, confidence, _, _ in detected:
        confidences[obj is not None].append(confidence)
    assert np.mean(confidences[True]) > np.mean(confidences[False]) + 0.3
    assert min(map(min, confidences.values())) > 0


def test_the_files_have_every_scene_with_the_standardised_features_of_precomp(tiny_world):
    rows = np.load(tiny_world / 'precomp/train_ims.npy').reshape(-1, FEATURE_DIMS).astype(float)
    mean = rows.sum(0) / len(rows)
    deviation = np.sqrt(((rows - mean) ** 2).sum(0) / len(rows))
    deviation[deviation < 0.02] = 0.02
    store = RegionStore(tiny_world / 'regions/store')
    assert len(store) == 32 + 6 + 10 and store.feature_dims == FEATURE_DIMS
    for split, name in (('train', 'train'), ('val', 'dev'), ('test', 'test')):
        precomp = PrecompDataset(name, str(tiny_world / 'precomp'), test_mode=True)
        rows = read_region_tsv(tiny_world / f'regions/{split}_obj36.tsv', FEATURE_DIMS)
        for index, (sample, (image, _)) in enumerate(zip(precomp, rows, strict=True)):
            assert image.image_id == f'{split}_{index:06d}'
            regions, stored = sample['inputs'], store[image.image_id]
            expected = (regions.features.numpy() - mean) / deviation
            assert np.allclose(image.features, expected, atol=1e-5)
            assert np.allclose(stored.features, expected, atol=1e-5, rtol=1e-3)  # float16
            assert np.allclose(stored.boxes, regions.boxes)
            assert np.array_equal(stored.labels.objects, image.labels.objects)


def test_scenes_of_minimal_pairs_have_regions_of_the_same_kind(tiny_world):
    rows = np.load(tiny_world / 'precomp/train_ims.npy').reshape(-1, FEATURE_DIMS).astype(float)
    mean, deviation = rows.mean(0), rows.std(0).clip(min=0.02)
    store = RegionStore(tiny_world / 'skills/store')
    files = sorted((tiny_world / 'skills/images').iterdir())
    assert len(store) == len(files) == 10
    spec = json.loads((tiny_world / 'meta.json').read_text())
    for index, file in enumerate(files):
        image, stored = cv2.imread(str(file))[..., ::-1], store[file.stem]
        boxes = np.rint(stored.boxes.numpy() * spec['size']).astype(int)
        expected = (describe_regions(image, boxes) - mean) / deviation
        assert np.allclose(stored.features, expected, atol=2e-3, rtol=2e-3)  # float16
        scene, _ = generate_pairs(spec['seed'], index)
        for mask in render_scene(scene, spec['size'])[1]:
            x, y, width, height = cv2.boundingRect(mask.astype(np.uint8))
            edges = np.abs(boxes - (x, y, x + width, y + height)).max(1)
            assert edges.min() <= 0.1 * max(width, height) + 1


def test_the_class_names_are_on_disk(tiny_world):
    for name, classes in (('objects', OBJECTS), ('attributes', ATTRIBUTES)):
        assert (tiny_world / f'regions/{name}_vocab.txt').read_text().split('\n')[:-1] == [*classes]
    assert (len(OBJECTS), len(ATTRIBUTES), REGIONS, FEATURE_DIMS) == (8, 48, 8, 259)
