"""Loading regions in place of pixels, and batches of them."""

import json

import pytest
import torch
from detected import random_image, random_images, write_store

from xmodal.datasets import AlbefJsonDataset, stack_regions
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.datasets.transforms import BrokenImageError, LoadRegions, PackRegionText
from xmodal.models.base.region_preprocessor import RegionTextPreprocessor
from xmodal.structures import ObjectLabels


@pytest.fixture
def folder(tmp_path):
    return str(write_store(tmp_path / 'store', random_images((3, 1, 4))))


def initial_results(*paths, is_list=False):
    results = {'img_path': paths[0], 'text': 'a', 'image_id': 0, 'sample_index': 0}
    return {**results, 'img_paths': list(paths)} if is_list else results


def test_the_stem_of_the_file_name_is_the_image_id(folder):
    regions = LoadRegions(folder)(initial_results('train2014/image_2.jpg'))['regions']
    assert torch.equal(regions.features, torch.from_numpy(random_images()[2].features))


@pytest.mark.parametrize('name', ['2020.01.05_a', 'x/2020.01.05_a.JPG', 'a.tar/2020.01.05_a'])
def test_an_id_with_dots_is_found_with_and_without_a_suffix(tmp_path, name):
    transform = LoadRegions(str(write_store(tmp_path, [random_image('2020.01.05_a', 2)])))
    assert transform.has(name)
    assert len(transform(initial_results(name))['regions'].features) == 2


def test_all_stores_are_searched(folder, tmp_path):
    other = write_store(tmp_path / 'other', [random_image('2354786', 2)])
    transform = LoadRegions([folder, str(other)])
    assert len(transform(initial_results('2354786'))['regions'].features) == 2
    assert transform.has('x/image_0.png') and not transform.has('image_9.png')


def test_an_image_without_regions_is_a_broken_image(folder):
    with pytest.raises(BrokenImageError, match='image_9: no regions of this image in .*store'):
        LoadRegions(folder)(initial_results('image_9.jpg'))


def test_images_that_are_in_no_store_are_counted_when_a_data_set_is_built(tmp_path, monkeypatch):
    log, extractor = [], {'type': 'NeverBuilt'}
    monkeypatch.setattr('xmodal.datasets.base.print_log', lambda text, *_, **__: log.append(text))
    with RegionStoreWriter(tmp_path / 'store', {'extractor': extractor}) as writer:
        writer.append(random_image('1', 3))
        writer.finish()
    pairs = [{'image': f'{n}.jpg', 'caption': 'a dog'} for n in (1, 2)]
    (tmp_path / 'train.json').write_text(json.dumps(pairs))
    for n in (1, 2):
        (tmp_path / f'{n}.jpg').touch()
    pipeline = [LoadRegions(str(tmp_path / 'store'), extractor)]
    AlbefJsonDataset('train.json', data_root=str(tmp_path), pipeline=pipeline)
    (warning,) = log
    assert '1 of 2 checked images are in no store' in warning and '2.jpg' in warning
    AlbefJsonDataset('train.json', data_root=str(tmp_path), pipeline=[LoadRegions([], extractor)])
    assert len(log) == 1  # of what was never to be stored


def test_the_images_of_a_sample_follow_each_other_in_a_batch(folder):
    load, pack = LoadRegions(folder), PackRegionText()
    pairs = [('image_0.png', 'image_1.png'), ('image_2.png', 'image_0.png')]
    batch = stack_regions([pack(load(initial_results(*pair, is_list=True))) for pair in pairs])
    assert batch['inputs'].attention_mask.sum(1).tolist() == [3, 1, 4, 3]
    assert len(batch['data_samples']) == 2
    expected = torch.from_numpy(random_images()[0].features)
    assert torch.equal(batch['inputs'].features[0, :3], expected)
    assert torch.equal(batch['inputs'].features[3, :3], expected)


def test_boxes_and_labels_are_padded_with_zeros(folder):
    load, pack = LoadRegions(folder), PackRegionText()
    batch = stack_regions([pack(load(initial_results(f'image_{n}.jpg'))) for n in range(3)])[
        'inputs'
    ]
    assert batch.features.shape == (3, 4, 5) and batch.boxes.shape == (3, 4, 4)
    assert isinstance(batch.labels, ObjectLabels)
    assert all(field.shape == (3, 4) for field in batch.labels)
    padding = ~batch.attention_mask
    assert batch.labels.object_confidences[padding].eq(0).all()
    assert batch.labels.objects[1, 0] == random_images()[1].labels.objects[0]


def test_labels_that_one_image_does_not_have_are_dropped(folder):
    load, pack = LoadRegions(folder), PackRegionText()
    samples = [pack(load(initial_results(f'image_{n}.jpg'))) for n in range(2)]
    samples[1]['inputs'] = samples[1]['inputs']._replace(labels=None)
    batch = stack_regions(samples)['inputs']
    assert batch.labels is None and batch.boxes is not None


def test_the_preprocessor_passes_labels_on(folder, tiny_world):
    samples = [
        PackRegionText()(LoadRegions(folder)(initial_results(f'image_{n}.jpg'))) for n in range(2)
    ]
    vocabulary = str(tiny_world / 'vocab.txt')
    preprocessor = RegionTextPreprocessor(dict(pretrained=vocabulary), max_length=8)
    data = stack_regions(samples)
    batch = preprocessor(data)['inputs']
    assert torch.equal(batch.images.labels.objects, data['inputs'].labels.objects)
    assert torch.equal(batch.images.boxes, data['inputs'].boxes)
