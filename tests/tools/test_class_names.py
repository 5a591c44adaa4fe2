"""Image-text pairs of a classifier's weights: a small random CNN and drawn images."""

import json
import sys

import numpy as np
import pytest
import timm
import torch

from tools.dataset_converters import class_names, extract_regions
from xmodal.datasets import AlbefJsonDataset
from xmodal.datasets.region_store import RegionStore
from xmodal.registry import MODELS

CONFIG = """
pipeline = [
    dict(
        type='LoadRegions', store={store!r},
        extractor=dict(type='GridExtractor', arch={arch!r}, image_size=64, pretrained={weights!r}),
    ),
]
test_dataloader = dict(dataset=dict(pipeline=pipeline))
"""
CLASSES = 7


@pytest.fixture
def make(tiny_world, tmp_path, monkeypatch):
    """Writes config, weights and store of a CNN, and a function that makes the pairs."""

    def run(tool, *arguments):
        monkeypatch.setattr(sys, 'argv', ['tool', *map(str, arguments)])
        tool.main()

    def make(arch='test_resnet', names=CLASSES):
        torch.manual_seed(0)
        weights, config = tmp_path / 'weights.pth', tmp_path / 'config.py'
        torch.save(timm.create_model(arch, num_classes=CLASSES).state_dict(), weights)
        store = str(tmp_path / 'store')
        config.write_text(CONFIG.format(store=store, arch=arch, weights=str(weights)))
        run(extract_regions, config, tiny_world / 'images/test', '--workers', '0')
        (tmp_path / 'names.json').write_text(json.dumps([f'kind {i}' for i in range(names)]))
        out = ['--out', tmp_path / 'data/kinds', '--captions', '2']
        run(class_names, config, tmp_path / 'names.json', *out)

    return make


@pytest.fixture
def whole_model(monkeypatch):
    """The weights of a classifier of seven classes fit its architecture."""
    create = timm.create_model

    def small(arch, **options):
        return create(arch, **{'num_classes': CLASSES, **options})

    monkeypatch.setattr('xmodal.models.backbones.timm_grid.timm.create_model', small)


def test_a_class_is_the_mean_photograph_moved_along_its_weights(make, whole_model, tmp_path):
    make()
    photographs, kinds = (
        RegionStore(tmp_path / 'store'),
        RegionStore(tmp_path / 'data/kinds/regions'),
    )
    assert kinds.sources['extractor'] == photographs.sources['extractor']
    weights = torch.load(tmp_path / 'weights.pth')['fc.weight'].numpy()
    features = np.stack([image.features.astype(np.float32) for image in photographs.images()])
    pooled, largest = features.mean(1), features.max(1).mean(0)
    mean = pooled.mean(0)
    distance = np.mean([np.linalg.norm(x - mean) for x in pooled])
    found = list(kinds.images())
    assert len(found) == CLASSES
    for k, image in enumerate(found):
        assert image.image_id == f'kinds_{k:04}' and image.boxes.shape == (4, 4)
        cells = image.features.astype(np.float32)
        direction = weights[k] - weights.mean(0)
        moved = mean + distance * direction / np.linalg.norm(direction)
        known = mean > 1e-4
        np.testing.assert_allclose(cells.mean(0)[known], moved.clip(0)[known], rtol=5e-3, atol=1e-3)
        expected = largest * moved.clip(0) / mean.clip(1e-6)
        np.testing.assert_allclose(cells.max(0)[known], expected[known], rtol=5e-3, atol=1e-3)


def test_a_data_set_reads_the_pairs_beside_photographs(make, whole_model, tmp_path):
    make()
    load = dict(
        type='LoadRegions', store=[str(tmp_path / 'store'), str(tmp_path / 'data/kinds/regions')]
    )
    dataset = AlbefJsonDataset(
        data_root=str(tmp_path / 'data'), ann_file=['kinds/train.json'], captions='each',
        pipeline=[load, dict(type='PackRegionText')],
    )  # fmt: skip
    samples = [dataset[i] for i in range(len(dataset))]
    assert len(samples) == 2 * CLASSES
    assert {sample['data_samples'].text for sample in samples} == {
        text for i in range(CLASSES) for text in (f'kind {i}', f'a kind {i}')
    }
    assert samples[0]['inputs'].features.shape == (4, 96)


def test_names_of_other_classes_are_an_error(make, whole_model):
    with pytest.raises(ValueError, match='names.json has 5 names, and the CNN 7 classes'):
        make(names=5)


def test_negative_features_are_an_error(make, whole_model):
    with pytest.raises(ValueError, match='expected grid features of a CNN.* no negative value'):
        make('test_convnext')


def test_an_extractor_without_a_classifier_is_an_error():
    extractor = MODELS.build(
        dict(type='GridExtractor', arch='test_resnet', image_size=64, pretrained=False)
    )
    with pytest.raises(ValueError, match="'test_resnet', pretrained=False.* name a pretrained CNN"):
        extractor.class_weights()
