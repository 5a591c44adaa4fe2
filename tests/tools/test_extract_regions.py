"""Features of photographs, computed once by the extractor that a config names."""

import sys
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from torchvision.models import get_model

from tools.dataset_converters import extract_regions
from xmodal.datasets.image_file import BrokenImageError
from xmodal.datasets.region_store import RegionStore
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.datasets.transforms import LoadRegions
from xmodal.registry import MODELS

CONFIG = """
pipeline = [
    dict(
        type='LoadRegions', store={store!r},
        extractor=dict(
            type='GridExtractor', arch='test_convnext', image_size=64, pretrained={weights!r}
        ),
    ),
]
test_dataloader = dict(dataset=dict(pipeline=pipeline))
"""


@pytest.fixture
def photos(tmp_path):
    """A folder of nine images of different sizes, one of them broken, and a config."""
    torch.manual_seed(0)
    model = MODELS.build(
        dict(type='GridExtractor', arch='test_convnext', image_size=64, pretrained=False)
    ).model
    whole = timm.create_model('test_convnext')
    whole.load_state_dict(model.state_dict(), strict=False)
    torch.save(whole.state_dict(), tmp_path / 'weights.pth')
    folder = tmp_path / 'images/below'
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(8):
        pixels = rng.integers(0, 256, (40 + i, 60, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f'image{i}.png')
    (folder / 'image3b.png').write_bytes(b'no image')
    config = tmp_path / 'config.py'
    store = tmp_path / 'store'
    config.write_text(CONFIG.format(store=str(store), weights=str(tmp_path / 'weights.pth')))
    return config, folder.parent, store


def run(monkeypatch, *arguments):
    options = ['--batch-size', '3', '--workers', '0', '--device', 'cpu', *arguments]
    monkeypatch.setattr(sys, 'argv', ['extract', *map(str, options)])
    extract_regions.main()


def extractor_of(config):
    return extract_regions.find_load_regions(extract_regions.read_config(str(config)))['extractor']


def test_the_store_has_what_the_extractor_says_of_each_image(photos, monkeypatch, capsys):
    config, images, folder = photos
    run(monkeypatch, config, images)
    assert 'image3b.png' in capsys.readouterr().out
    store = RegionStore(folder)
    assert len(store) == 8 and 'image3b' not in store
    model = MODELS.build(extractor_of(config))
    for i in (0, 7):
        image = Image.open(images / f'below/image{i}.png').resize((64, 64), Image.BICUBIC)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None]
        features, boxes = model(pixels)
        found = store[f'image{i}']
        # Pillow and torchvision round a resized pixel differently, and the store has float16.
        similarity = torch.cosine_similarity(found.features, features[0], dim=1)
        assert similarity.min() > 0.999
        torch.testing.assert_close(found.boxes, boxes, atol=1e-5, rtol=0)


@pytest.mark.parametrize('has_bar', [True, False])
def test_a_killed_command_run_again_gives_the_same_store(photos, monkeypatch, tmp_path, has_bar):
    config, images, folder = photos
    bar = partial(extract_regions.tqdm, disable=not has_bar)  # as by TQDM_DISABLE
    monkeypatch.setattr(extract_regions, 'tqdm', bar)
    run(monkeypatch, config, images, '--out', tmp_path / 'whole')
    append = RegionStoreWriter.append

    def append_or_interrupt(self, image):
        if self.images == 5:
            raise KeyboardInterrupt
        append(self, image)

    monkeypatch.setattr(RegionStoreWriter, 'append', append_or_interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(monkeypatch, config, images)
    monkeypatch.setattr(RegionStoreWriter, 'append', append)
    run(monkeypatch, config, images)
    for file in (tmp_path / 'whole').iterdir():
        assert file.read_bytes() == (folder / file.name).read_bytes(), file.name


def test_an_image_without_stored_regions_is_extracted_from_its_pixels(
    photos, monkeypatch, tmp_path
):
    config, images, folder = photos
    run(monkeypatch, config, images)
    new = tmp_path / 'new.png'
    (images / 'below/image5.png').rename(new)
    load = LoadRegions(str(folder), extractor_of(config))
    found = load({'img_path': str(new)})['regions']
    expected = load({'img_path': 'gone/image5.png'})['regions']  # by its id
    torch.testing.assert_close(found.features, expected.features, atol=1e-2, rtol=1e-2)
    assert found.attention_mask.all() and torch.equal(found.boxes, expected.boxes)
    assert load.has(new) and not load.has(tmp_path / 'absent.png')
    with pytest.raises(BrokenImageError, match=r'absent\.png'):
        load({'img_path': str(tmp_path / 'absent.png')})
    with pytest.raises(BrokenImageError, match='no regions of this image'):
        LoadRegions(str(folder))({'img_path': str(new)})


def test_a_store_of_another_extractor_is_refused(photos, monkeypatch):
    config, images, folder = photos
    run(monkeypatch, config, images)
    other = extractor_of(config) | {'stage': 1}
    with pytest.raises(ValueError, match=r'store was computed by .*image_size.*extract-regions'):
        LoadRegions(str(folder), other)


def test_a_tuple_in_the_config_of_the_extractor_is_a_list_in_the_store(photos, monkeypatch):
    config, images, folder = photos
    member = {key: extractor_of(config)[key] for key in ('arch', 'pretrained')}
    extractor = dict(type='GridEnsemble', image_size=64, members=(member,))
    step = dict(type='LoadRegions', store=str(folder), extractor=extractor)
    config.write_text(f'test_dataloader = dict(dataset=dict(pipeline=[{step!r}]))')
    run(monkeypatch, config, images)
    assert isinstance(extractor_of(config)['members'], tuple)
    assert len(LoadRegions(str(folder), extractor_of(config)).stores) == 1


def test_processes_write_parts_that_open_as_one(photos, monkeypatch):
    config, images, folder = photos
    for rank in range(2):
        monkeypatch.setenv('RANK', str(rank))
        monkeypatch.setenv('WORLD_SIZE', '2')
        run(monkeypatch, config, images)
    load = LoadRegions(str(folder))
    assert sum(map(len, load.stores)) == 8
    assert all(load.has(f'image{i}.png') for i in range(8))
    monkeypatch.setenv('WORLD_SIZE', '10')
    with pytest.raises(ValueError, match='9 images for 10 processes'):
        run(monkeypatch, config, images)


def test_parts_that_are_finished_stay_and_the_others_continue(photos, monkeypatch, capsys):
    config, images, folder = photos
    monkeypatch.setenv('WORLD_SIZE', '2')
    for rank, finish in ((0, RegionStoreWriter.finish), (1, lambda self: 1 / 0)):
        monkeypatch.setenv('RANK', str(rank))
        with monkeypatch.context() as patch, suppress(ZeroDivisionError):
            patch.setattr(RegionStoreWriter, 'finish', finish)
            run(patch, config, images)
    first = (folder / 'part_0/store.json').stat().st_mtime_ns  # reading changes the time of access
    for rank in range(2):
        monkeypatch.setenv('RANK', str(rank))
        run(monkeypatch, config, images)
    assert 'part_0: finished before' in capsys.readouterr().out
    assert (folder / 'part_0/store.json').stat().st_mtime_ns == first
    assert sum(map(len, LoadRegions(str(folder)).stores)) == 8
    monkeypatch.setenv('RANK', '0')
    for other in (['--views', '2'], ['--dtype', 'float32']):
        with pytest.raises(FileExistsError, match='part_0 contains a finished region store'):
            run(monkeypatch, config, images, *other)


def test_a_process_whose_images_are_all_broken_leaves_no_part(photos, monkeypatch, capsys):
    config, images, folder = photos
    monkeypatch.setenv('WORLD_SIZE', '9')
    for rank in (4, 5):  # the fifth file is broken
        monkeypatch.setenv('RANK', str(rank))
        run(monkeypatch, config, images)
    assert 'part_4: 0 images, 0 regions, 1 skipped' in capsys.readouterr().out
    assert [path.name for path in folder.iterdir()] == ['part_5']
    assert len(LoadRegions(str(folder)).stores) == 1


def test_wrong_arguments_are_sentences(photos, monkeypatch, tmp_path):
    config, images, _ = photos
    with pytest.raises(FileNotFoundError, match='nowhere'):
        run(monkeypatch, config, tmp_path / 'nowhere')
    twin = tmp_path / 'twin'
    twin.mkdir()
    (twin / 'image1.jpg').write_bytes(b'')
    with pytest.raises(ValueError, match=r'image1\.png and .*image1\.jpg have one stem'):
        run(monkeypatch, config, images, twin)
    plain = tmp_path / 'plain.py'
    plain.write_text('a = 1')
    with pytest.raises(ValueError, match=r'plain\.py: no pipeline has'):
        run(monkeypatch, plain, images)


def test_random_crops_are_stored_beside_each_image_and_drawn_in_training(photos, monkeypatch):
    config, images, folder = photos
    run(monkeypatch, config, images, '--views', '3')
    load = LoadRegions(str(folder), extractor_of(config), views=3)
    (store,) = load.stores
    assert len(store) == 24
    views = [store[f'image0{end}'].features for end in ('', '#1', '#2')]
    assert not torch.equal(views[0], views[1]) and not torch.equal(views[1], views[2])
    plain = LoadRegions(str(folder))({'img_path': 'image0.png'})['regions'].features
    assert torch.equal(plain, views[0])
    torch.manual_seed(0)
    drawn = [load({'img_path': 'image0.png'})['regions'].features for _ in range(300)]
    counts = [sum(torch.equal(x, view) for x in drawn) for view in views]
    assert sum(counts) == 300 and min(counts) > 70
    with pytest.raises(ValueError, match=r'views=4, and .*store has 3 of each image'):
        LoadRegions(str(folder), views=4)


def test_a_detector_writes_boxes_and_classes_of_images_of_their_own_size(
    photos, monkeypatch, tmp_path
):
    config, images, folder = photos
    name = 'fasterrcnn_mobilenet_v3_large_320_fpn'
    torch.manual_seed(0)
    detector = get_model(name, weights=None, weights_backbone=None, num_classes=4)
    torch.save(detector.state_dict(), tmp_path / 'detector.pth')
    extractor = dict(
        type='DetectorExtractor', detector=name, pretrained=str(tmp_path / 'detector.pth'),
        max_regions=6, min_score=0.0,
    )  # fmt: skip
    step = dict(type='LoadRegions', store=str(folder), extractor=extractor)
    config.write_text(f'test_dataloader = dict(dataset=dict(pipeline=[{step!r}]))')
    run(monkeypatch, config, images)
    stored = RegionStore(folder)['image5']
    pixels = torch.from_numpy(np.array(Image.open(images / 'below/image5.png')))
    (expected,) = MODELS.build(extractor).extract([pixels.permute(2, 0, 1)], ['image5'])
    assert len(stored.features) == 6 and torch.equal(stored.labels.objects, expected.labels.objects)
    torch.testing.assert_close(stored.boxes, expected.boxes, atol=1e-4, rtol=0)
    torch.testing.assert_close(stored.features, expected.features, atol=1e-2, rtol=1e-2)
    new = tmp_path / 'new.png'
    (images / 'below/image5.png').rename(new)
    found = LoadRegions(str(folder), extractor)({'img_path': str(new)})['regions']
    torch.testing.assert_close(found.boxes, expected.boxes)
    with pytest.raises(ValueError, match='--views 2: DetectorExtractor takes whole images'):
        run(monkeypatch, config, images, '--views', '2')
