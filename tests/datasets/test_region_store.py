"""Stores of region features."""

import json
import pickle

import numpy as np
import pytest
import torch
from detected import assert_same, random_image, random_images, write_store

from xmodal.datasets.region_store import RegionStore, open_stores
from xmodal.datasets.region_writer import RegionStoreWriter


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def folder(tmp_path):
    return write_store(tmp_path / 'store', random_images())


def test_the_regions_of_every_image_are_read_by_its_id_with_boxes_as_shares(folder):
    store = RegionStore(folder)
    assert len(store) == 3 and store.feature_dims == 5 and store.num_regions == 8
    for image in reversed(random_images()):
        regions = store[image.image_id]
        assert torch.equal(regions.features, torch.from_numpy(image.features))
        assert regions.attention_mask.tolist() == [True] * len(image.features)
        expected = [[x1 / 640, y1 / 480, x2 / 640, y2 / 480] for x1, y1, x2, y2 in image.boxes]
        assert torch.allclose(regions.boxes, torch.tensor(expected).float(), atol=1e-7)
        assert regions.labels.objects.tolist() == image.labels.objects.tolist()
        assert regions.labels.attributes.tolist() == image.labels.attributes.tolist()
        confidences = regions.labels.object_confidences, regions.labels.attribute_confidences
        assert np.array_equal(confidences[0], image.labels.object_confidences)
        assert np.array_equal(confidences[1], image.labels.attribute_confidences)
        assert [x.dtype for x in regions.labels] == [torch.int64, torch.float32] * 2


def test_images_are_read_as_they_were_written(folder):
    for image, expected in zip(RegionStore(folder).images(), random_images(), strict=True):
        assert_same(image, expected)


def test_an_unknown_id_is_a_key_error(folder):
    store = RegionStore(folder)
    assert 'image_1' in store and 'image_3' not in store and '' not in store
    with pytest.raises(KeyError, match='image_3'):
        store['image_3']


def test_half_precision_rounds_only_features_and_is_returned_as_float32(tmp_path):
    image = random_image('a', 4)
    store = RegionStore(write_store(tmp_path / 'half', [image], dtype='float16'))
    assert (tmp_path / 'half/features.bin').stat().st_size == 4 * 5 * 2
    assert store['a'].features.dtype == torch.float32
    assert np.array_equal(store['a'].features, image.features.astype(np.float16))
    assert np.array_equal(store['a'].labels.object_confidences, image.labels.object_confidences)


def test_features_too_large_for_half_precision_are_refused(tmp_path):
    image = random_image('a', 2)
    image.features[0, 0] = 1e5
    with pytest.raises(ValueError, match='reach 100000, too large for float16'):
        write_store(tmp_path / 'half', [image], dtype='float16')


def test_boxes_and_labels_may_be_unknown(tmp_path):
    image = random_image('a', 2)._replace(boxes=None, labels=None)
    regions = RegionStore(write_store(tmp_path / 'bare', [image]))['a']
    assert regions.boxes is None and regions.labels is None


def test_all_images_of_a_store_must_be_alike(tmp_path):
    images = [random_image('a', 2), random_image('b', 2)._replace(labels=None)]
    with pytest.raises(ValueError, match=r'image b has .*\(5, True, False\).* \(5, True, True\)'):
        write_store(tmp_path / 'mixed', images)


def test_a_repeated_image_is_refused(tmp_path):
    with pytest.raises(ValueError, match='image image_0 is already in the store'):
        write_store(tmp_path / 'twice', [*random_images(), *random_images()])


def test_features_are_not_read_when_a_store_is_opened_or_sent_to_a_worker(folder):
    store = RegionStore(folder)
    base = store._features
    while not isinstance(base, np.memmap):
        base = base.base
    assert len(pickle.dumps(store)) < 1000
    again = pickle.loads(pickle.dumps(store))
    assert torch.equal(again['image_2'].features, store['image_2'].features)


def test_a_killed_writer_continues_after_its_checkpoint(tmp_path, folder):
    images = random_images()
    again = tmp_path / 'again'
    with RegionStoreWriter(again, 'test') as writer:
        writer.append(images[0])
        writer.checkpoint([0, 111])
        writer.append(images[1])  # lost, although its bytes are on disk
    with pytest.raises(FileNotFoundError, match='unfinished region store: run the same command'):
        RegionStore(again)
    with RegionStoreWriter(again, 'test') as writer:
        assert (writer.images, writer.position) == (1, [0, 111])
        with pytest.raises(ValueError, match='image_0 is already in the store'):
            writer.append(images[0])
        for image in images[1:]:
            writer.append(image)
        writer.finish()
    assert content(again) == content(folder)


def test_existing_files_are_not_overwritten(folder, tmp_path):
    before = content(folder)
    with pytest.raises(FileExistsError, match='contains a finished region store'):
        RegionStoreWriter(folder, 'test')
    other = tmp_path / 'other'
    other.mkdir()
    (other / 'thesis.txt').write_text('mine')
    with pytest.raises(FileExistsError, match='contains thesis.txt and no unfinished region store'):
        RegionStoreWriter(other, 'test')
    unfinished = tmp_path / 'unfinished'
    with RegionStoreWriter(unfinished, 'test'):
        pass
    with pytest.raises(FileExistsError, match='found test in float32, expected more in float32'):
        RegionStoreWriter(unfinished, 'more')
    assert content(folder) == before and content(other) == {'thesis.txt': b'mine'}


def test_two_processes_cannot_write_one_store(tmp_path):
    with (
        RegionStoreWriter(tmp_path / 'store', 'test'),
        pytest.raises(RuntimeError, match='another process is writing'),
    ):
        RegionStoreWriter(tmp_path / 'store', 'test')


def test_a_store_without_images_is_an_error(tmp_path):
    with pytest.raises(ValueError, match='it has no image'):
        write_store(tmp_path / 'empty', [])


def test_truncated_files_and_other_versions_are_named(folder, tmp_path):
    with open(folder / 'features.bin', 'r+b') as file:
        file.truncate(100)
    with pytest.raises(ValueError, match='features.bin has 100 bytes, expected 160'):
        RegionStore(folder)
    meta = json.loads((folder / 'store.json').read_text())
    (folder / 'store.json').write_text(json.dumps({**meta, 'version': 99}))
    with pytest.raises(ValueError, match=r'store\.json cannot be read: version is 99'):
        RegionStore(folder)
    with pytest.raises(FileNotFoundError, match='nowhere is not a region store'):
        RegionStore(tmp_path / 'nowhere')


@pytest.mark.parametrize(
    'content, message',
    [('', 'is not valid JSON'), ('[]', 'cannot be read'), ('{}', "key 'version'")],
)
def test_an_invalid_store_description_is_named(folder, content, message):
    (folder / 'store.json').write_text(content)
    with pytest.raises(ValueError, match=rf'store\.json .*{message}'):
        RegionStore(folder)


@pytest.mark.parametrize(
    'key, value',
    [('regions', 10**30), ('regions', -1), ('images', 2.5), ('id_bytes', '7'), ('dtype', 'object'),
     ('feature_dims', None), ('images', True)],
)  # fmt: skip
def test_wild_sizes_in_a_store_description_are_errors(folder, key, value):
    meta = json.loads((folder / 'store.json').read_text())
    (folder / 'store.json').write_text(json.dumps({**meta, key: value}))
    with pytest.raises(ValueError, match=rf'{key} is|bytes, expected'):
        RegionStore(folder)


def test_rows_beyond_the_regions_are_an_error(folder):
    content = bytearray((folder / 'images.bin').read_bytes())
    content[-16:-8] = (10**15).to_bytes(8, 'little')
    (folder / 'images.bin').write_bytes(content)
    with pytest.raises(ValueError, match=r'images\.bin ends with 1000000000000000 regions'):
        RegionStore(folder)


def test_features_of_all_stores_must_have_the_same_width(folder, tmp_path):
    narrow = random_image('z', 2)
    other = write_store(tmp_path / 'narrow', [narrow._replace(features=narrow.features[:, :3])])
    with pytest.raises(ValueError, match='different widths'):
        open_stores([str(folder), str(other)])


def test_an_image_id_of_two_stores_is_an_error(folder, tmp_path):
    apart = write_store(tmp_path / 'apart', [random_image('z', 2)])
    assert len(open_stores([str(folder), str(apart)])) == 2
    other = write_store(tmp_path / 'other', [random_image(name, 2) for name in ('y', 'image_1')])
    with pytest.raises(
        ValueError, match=r"store and .*other both have an image 'image_1' \(1 such"
    ):
        open_stores([str(folder), str(apart), str(other)])
