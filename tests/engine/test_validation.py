"""What a training finds wrong with the images of its validation before it begins."""

import json
import logging
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from runs import train

from xmodal.datasets import AlbefJsonDataset, AlbefReasoningDataset, WeightedConcatDataset
from xmodal.datasets.transforms import BrokenImageError
from xmodal.engine import validation
from xmodal.engine.validation import check_validation

PIPELINE = [dict(type='LoadImage'), dict(type='PackImageText')]


@pytest.fixture
def warnings(monkeypatch):
    found = []

    def keep(text, _, level):
        assert level == logging.WARNING
        found.append(text)

    monkeypatch.setattr(validation, 'print_log', keep)
    return found


@pytest.fixture
def config_of(tmp_path):
    """The config of a data set of images with these numbers; the folder has ten."""
    for number in range(10):
        cv2.imwrite(str(tmp_path / f'{number}.png'), np.full((8, 8, 3), number, np.uint8))

    def config(*numbers, **options):
        items = [{'image': f'{n}.png', 'caption': f'number {n}'} for n in numbers]
        name = f'{"_".join(map(str, numbers))}.json'
        (tmp_path / name).write_text(json.dumps(items))
        options = {'pipeline': PIPELINE, 'test_mode': True, **options}
        return dict(ann_file=name, data_root=str(tmp_path), **options)

    return config


def validated(*configs):
    """The data sets of a validation."""
    return [AlbefJsonDataset(**config) for config in configs]


def test_images_of_the_training_set_are_counted_once(config_of, warnings):
    trained = [config_of(0, 1, 2), config_of(2, 3)]
    trained = [dict(config, type='AlbefJsonDataset', test_mode=False) for config in trained]
    train_set = WeightedConcatDataset(trained)
    check_validation(train_set, validated(config_of(4, 5)))
    assert not warnings
    check_validation(train_set, validated(config_of(2, 3, 4), config_of(3, 5)))
    (warning,) = warnings
    assert warning.startswith('2 of 4 images of the validation are in the training set, too, for ')
    assert '/2.png' in warning


def test_images_of_equal_names_in_two_folders_are_different(config_of, warnings, tmp_path):
    config = config_of(0, 1)
    other = shutil.copytree(tmp_path, tmp_path / 'other')
    train_set = AlbefJsonDataset(**dict(config, data_root=str(other)))
    check_validation(train_set, validated(config))
    assert not warnings
    train_set = AlbefJsonDataset(**dict(config, ann_file=f'other/{config["ann_file"]}'))
    check_validation(train_set, validated(config))
    assert len(warnings) == 1


def test_broken_images_are_counted(config_of, tmp_path):
    train_set = AlbefJsonDataset(**config_of(0))
    (tmp_path / '4.png').write_bytes(b'')
    (tmp_path / '6.png').write_bytes((tmp_path / '6.png').read_bytes()[:-20])
    with pytest.raises(BrokenImageError, match=r'^2 of 4 images .* The first: \S+/4\.png: '):
        check_validation(train_set, validated(config_of(3, 4, 5, 6)))
    replaced = config_of(3, 4, test_mode=False)
    others = config_of(5, 6, pipeline=[])  # as where regions are loaded
    check_validation(train_set, validated(replaced, others))


def test_each_image_of_a_statement_is_read(config_of, tmp_path):
    train_set = AlbefJsonDataset(**config_of(0))
    items = [{'images': ['3.png', '4.png'], 'sentence': 'they differ', 'label': 'True'}]
    (tmp_path / 'pairs.json').write_text(json.dumps(items))
    pipeline = [dict(type='ForEachImage', transforms=PIPELINE[:1]), PIPELINE[1]]
    pairs = AlbefReasoningDataset(
        'pairs.json', data_root=str(tmp_path), pipeline=pipeline, test_mode=True
    )
    check_validation(train_set, [pairs])
    (tmp_path / '4.png').write_bytes(b'')
    with pytest.raises(BrokenImageError, match=r'^1 of 2 images .* The first: \S+/4\.png: '):
        check_validation(train_set, [pairs])


def test_of_many_images_some_are_read(config_of, monkeypatch, tmp_path):
    monkeypatch.setattr(validation, 'MAX_READ', 2)
    train_set = AlbefJsonDataset(**config_of(0))
    datasets = validated(config_of(3, 4, 5))
    (tmp_path / '4.png').write_bytes(b'')
    check_validation(train_set, datasets)
    (tmp_path / '5.png').write_bytes(b'')
    with pytest.raises(BrokenImageError, match='^1 of 2 images'):
        check_validation(train_set, datasets)


@pytest.mark.parametrize('rank', [0, 1])
def test_each_rank_reads_its_share_and_all_end_alike(config_of, monkeypatch, tmp_path, rank):
    train_set, datasets = AlbefJsonDataset(**config_of(0)), validated(config_of(3, 4, 5, 6))
    for number in (3, 4, 5, 6):
        (tmp_path / f'{number}.png').write_bytes(b'')
    shares = []
    monkeypatch.setattr(validation, 'get_rank', lambda: rank)
    monkeypatch.setattr(validation, 'get_world_size', lambda: 2)
    monkeypatch.setattr(
        validation, 'all_gather_object', lambda own: shares.append(own) or [own, ['9.png: broken']]
    )
    with pytest.raises(BrokenImageError, match=rf'^3 of 4 images .* The first: \S+/{3 + rank}\.'):
        check_validation(train_set, datasets)
    assert [Path(error.split(':')[0]).name for error in shares[0]] == [
        f'{number}.png' for number in (3 + rank, 5 + rank)
    ]


def test_a_training_with_a_broken_image_of_its_validation_does_not_begin(
    tiny_config, tiny_world, tmp_path
):
    root = shutil.copytree(tiny_world, tmp_path / 'broken')
    dataset = tiny_config.val_dataloader.dataset
    image = json.loads(Path(root, dataset.ann_file).read_text())[0]['image']
    (root / image).write_bytes(b'no image')
    with pytest.raises(BrokenImageError, match='images of the validation that were read'):
        train(tiny_config, **{'val_dataloader.dataset.data_root': str(root)})
    assert not list(Path(tiny_config.work_dir).glob('*.pth'))
