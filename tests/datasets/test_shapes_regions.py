"""Regions of the embedded world, and their files."""

import json

import cv2
import numpy as np
import pytest

from xmodal.datasets import PrecompDataset
from xmodal.datasets.shapes.record import Record
from xmodal.datasets.shapes.regions import (
    FEATURE_DIMS,
    REGIONS,
    Region,
    describe_regions,
    propose_regions,
)
from xmodal.datasets.shapes.render import render_scene
from xmodal.datasets.shapes.scene import sample_scene
from xmodal.vocabulary import Vocabulary

SIZE = 96


def make_record(index):
    scene = sample_scene(5, 'train', index)
    _, masks = render_scene(scene, SIZE)
    boxes = [cv2.boundingRect(mask.astype(np.uint8)) for mask in masks]
    return Record(scene, (), tuple(boxes), (), SIZE, '')


def iou(a, b):
    """Intersection over union of two boxes x1, y1, x2, y2."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    intersection = max(width, 0) * max(height, 0)
    areas = ((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return intersection / (sum(areas) - intersection)


@pytest.mark.parametrize('index', range(5))
def test_every_object_has_a_region_close_to_it(index):
    record = make_record(index)
    regions = propose_regions('train', record)
    assert len(regions) == REGIONS and propose_regions('train', record) == regions
    indices = [region.object_index for region in regions if region.object_index is not None]
    assert sorted(indices) == list(range(len(record.boxes)))
    for (x1, y1, x2, y2), index in regions:
        assert 0 <= x1 < x2 <= SIZE and 0 <= y1 < y2 <= SIZE
        if index is not None:
            x, y, width, height = record.boxes[index]
            assert iou((x1, y1, x2, y2), (x, y, x + width, y + height)) > 0.6


def test_the_order_of_regions_does_not_depend_on_the_objects():
    first = [propose_regions('train', make_record(index))[0].object_index for index in range(30)]
    assert None in first and len(set(first)) > 2


def test_a_feature_depends_only_on_the_pixels_in_the_box_and_its_size():
    image = np.random.default_rng(0).integers(0, 255, (SIZE, SIZE, 3), np.uint8)
    regions = [Region((10, 20, 50, 44), None), Region((60, 0, 96, 30), 0)]
    features = describe_regions(image, regions)
    assert features.shape == (2, FEATURE_DIMS) and features.dtype == np.float32
    assert 0 <= features.min() and features.max() <= 1
    assert np.allclose(features[0, -3:], [40 / 96, 24 / 96, 40 * 24 / 96**2])
    masked = np.zeros_like(image)
    masked[20:44, 10:50] = image[20:44, 10:50]
    other = describe_regions(masked, regions)
    assert np.array_equal(other[0], features[0]) and not np.array_equal(other[1], features[1])


def test_colours_and_edges_are_in_the_documented_parts_of_a_feature():
    image = np.full((32, 32, 3), 255, np.uint8)
    image[:, :16] = (255, 0, 0)
    edges, colours, cells, _ = np.split(
        describe_regions(image, [Region((0, 0, 32, 32), None)])[0], [144, 208, 256]
    )
    # Half red, half white, in bins (3, 0, 0) and (3, 3, 3) of 4 x 4 x 4.
    assert dict(zip(np.flatnonzero(colours), colours[colours > 0] ** 2, strict=True)) == (
        pytest.approx({48: 0.5, 63: 0.5})
    )
    assert cells.reshape(4, 4, 3)[0].tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1]]
    # A vertical edge at the border of the middle cells: gradients of the first orientation.
    by_cell = edges.reshape(4, 4, 9)
    assert by_cell[:, 1:3, 0].all() and by_cell.sum() == pytest.approx(by_cell[:, 1:3, 0].sum())


def test_shape_and_colour_can_be_read_linearly():
    features, kinds = [], []
    for index in range(250):
        record = make_record(index)
        image, _ = render_scene(record.scene, SIZE)
        regions = propose_regions('train', record)
        for feature, region in zip(describe_regions(image, regions), regions, strict=True):
            if region.object_index is not None:
                obj = record.scene.objects[region.object_index]
                features.append(feature)
                kinds.append((obj.shape, obj.colour))
    features = np.c_[np.array(features), np.ones(len(features))]
    train, test = features[:-200], features[-200:]
    for names in zip(*kinds, strict=True):
        classes = sorted(set(names))
        target = np.array([[name == other for other in classes] for name in names], np.float64)
        gram = train.T @ train + 0.01 * np.eye(train.shape[1])
        weights = np.linalg.solve(gram, train.T @ target[:-200])
        is_correct = (test @ weights).argmax(1) == target[-200:].argmax(1)
        assert is_correct.mean() > 0.9


@pytest.mark.parametrize('split, name', [('train', 'train'), ('val', 'dev'), ('test', 'test')])
def test_the_files_are_read_with_the_captions_of_the_other_formats(tiny_world, split, name):
    dataset = PrecompDataset(name, str(tiny_world / 'precomp'), test_mode=True)
    records = json.loads((tiny_world / 'albef' / f'{split}.json').read_text())
    samples = [(s['data_samples'].image_id, s['data_samples'].text) for s in dataset]
    assert samples == [(record['image_id'], record['caption']) for record in records]
    regions = dataset[0]['inputs']
    assert regions.features.shape == (REGIONS, FEATURE_DIMS) and regions.attention_mask.all()
    image = cv2.imread(str(tiny_world / records[0]['image']))[..., ::-1]
    box = (regions.boxes[0] * len(image)).round().int().tolist()
    features = describe_regions(image, [Region(tuple(box), None)])
    assert np.allclose(regions.features[0], features[0], atol=1e-3)  # float16 on disk


def test_the_vocabulary_has_every_word_of_the_captions(tiny_world):
    vocabulary = Vocabulary.read(tiny_world / 'precomp' / 'vocab.json')
    for name in ('train', 'dev', 'test'):
        for caption in (tiny_world / 'precomp' / f'{name}_caps.txt').read_text().splitlines():
            assert 3 not in vocabulary.encode(caption)
