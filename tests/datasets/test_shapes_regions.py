"""Regions of the embedded world, and their files."""

import json

import cv2
import numpy as np
import pytest
from shown_objects import SIZE, make_record, shown_objects

from xmodal.datasets import PrecompDataset
from xmodal.datasets.shapes.regions import FEATURE_DIMS, REGIONS, describe_regions, propose_regions
from xmodal.datasets.shapes.render import render_scene
from xmodal.vocabulary import Vocabulary


@pytest.mark.parametrize('index', range(5))
def test_every_object_has_a_region_close_to_it(index):
    record = make_record(index)
    regions = propose_regions('train', record)
    assert len(regions) == REGIONS and propose_regions('train', record) == regions
    assert set(range(len(record.boxes))) <= set(shown_objects(record, regions))
    for x1, y1, x2, y2 in regions:
        assert 0 <= x1 < x2 <= SIZE and 0 <= y1 < y2 <= SIZE


def test_the_order_of_regions_does_not_depend_on_the_objects():
    records = [make_record(index) for index in range(30)]
    first = [shown_objects(r, propose_regions('train', r)[:1])[0] for r in records]
    assert None in first and len(set(first)) > 2


def test_a_feature_depends_only_on_the_pixels_in_the_box_and_its_size():
    image = np.random.default_rng(0).integers(0, 255, (SIZE, SIZE, 3), np.uint8)
    regions = [(10, 20, 50, 44), (60, 0, 96, 30)]
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
        describe_regions(image, [(0, 0, 32, 32)])[0], [144, 208, 256]
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
        shown = shown_objects(record, regions)
        for feature, index in zip(describe_regions(image, regions), shown, strict=True):
            if index is not None:
                obj = record.scene.objects[index]
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
    features = describe_regions(image, [box])
    assert np.allclose(regions.features[0], features[0], atol=1e-3)  # float16 on disk


def test_the_vocabulary_has_every_word_of_the_captions(tiny_world):
    vocabulary = Vocabulary.read(tiny_world / 'precomp' / 'vocab.json')
    for name in ('train', 'dev', 'test'):
        for caption in (tiny_world / 'precomp' / f'{name}_caps.txt').read_text().splitlines():
            assert 3 not in vocabulary.encode(caption)
