"""The embedded world on disk."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest

from xmodal.datasets.shapes import WorldSpec, build_world
from xmodal.datasets.shapes.render import render_scene
from xmodal.datasets.shapes.scene import SHAPES, sample_scene
from xmodal.files import exclusive_dir

SPEC = WorldSpec(train=12, val=4, test=6, size=64, seed=3)


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('shapes') / 'world'
    assert build_world(folder, SPEC, workers=2)
    return folder


def content(folder):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob('*')
        if file.is_file()
    }


def load(file):
    return json.loads(file.read_text())


def test_the_same_seed_gives_the_same_bytes_with_any_number_of_workers(world, tmp_path):
    build_world(tmp_path / 'again', SPEC, workers=1)
    assert content(tmp_path / 'again') == content(world)


def test_a_finished_build_is_not_changed(world):
    times = {file: file.stat().st_mtime_ns for file in world.rglob('*')}
    assert not build_world(world, SPEC, workers=1)
    assert {file: file.stat().st_mtime_ns for file in world.rglob('*')} == times


def test_another_build_is_not_overwritten(world):
    before = content(world)
    with pytest.raises(FileExistsError, match=r"another build.*'seed': 3.*'seed': 4.*--out"):
        build_world(world, replace(SPEC, seed=4), workers=1)
    assert content(world) == before


def test_a_folder_with_other_files_is_not_touched(tmp_path):
    (tmp_path / 'thesis.txt').write_text('mine')
    with pytest.raises(FileExistsError, match='not a build of shapes'):
        build_world(tmp_path, SPEC, workers=1)
    assert content(tmp_path) == {'thesis.txt': b'mine'}


def test_two_processes_cannot_build_one_world(tmp_path):
    with (
        exclusive_dir(tmp_path / 'world'),
        pytest.raises(RuntimeError, match='another process is writing to it'),
    ):
        build_world(tmp_path / 'world', SPEC, workers=1)


def test_an_interrupted_build_is_rebuilt(world, tmp_path):
    folder = tmp_path / 'world'
    image = folder / 'images' / 'train' / '000' / 'train_000003.png'
    image.parent.mkdir(parents=True)
    image.write_bytes(b'half an image')
    (folder / 'unfinished.json').write_text(json.dumps(SPEC.to_meta()))
    assert build_world(folder, SPEC, workers=1)
    assert content(folder) == content(world)


@pytest.mark.parametrize(('name', 'value'), [('train', 0), ('size', 16), ('seed', -1)])
def test_an_invalid_spec_is_an_error_that_names_the_value(name, value):
    with pytest.raises(ValueError, match=f'{name}: found {value}, expected'):
        WorldSpec(**{name: value})


def test_the_images_on_disk_are_the_rendered_scenes(world):
    for split in ('train', 'val', 'test'):
        for index, record in enumerate(load(world / 'albef' / f'{split}.json')):
            image = cv2.imread(str(world / record['image']))[..., ::-1]
            rendered, _ = render_scene(sample_scene(SPEC.seed, split, index), SPEC.size)
            assert np.array_equal(image, rendered)


def test_every_format_has_the_same_captions_for_the_same_images(world):
    karpathy = load(world / 'karpathy' / 'dataset_shapes.json')['images']
    for split, count in (('train', 12), ('val', 4), ('test', 6)):
        records = load(world / 'albef' / f'{split}.json')
        albef = {r['image']: (r['image_id'], r['caption']) for r in records}
        coco = load(world / 'coco' / f'captions_{split}.json')
        texts = {image['id']: [] for image in coco['images']}
        for annotation in coco['annotations']:
            texts[annotation['image_id']].append(annotation['caption'])
        assert {i['file_name']: (i['id'], texts[i['id']]) for i in coco['images']} == albef
        assert {
            f'{i["filepath"]}/{i["filename"]}': (i['imgid'], [s['raw'] for s in i['sentences']])
            for i in karpathy
            if i['split'] == split
        } == albef
        assert len(albef) == count


def test_ids_are_unique_over_the_splits(world):
    records = [r for split in ('train', 'val', 'test') for r in load(world / f'albef/{split}.json')]
    assert len({record['image_id'] for record in records}) == len(records) == 22
    images = load(world / 'karpathy' / 'dataset_shapes.json')['images']
    ids = [sentence['sentid'] for image in images for sentence in image['sentences']]
    assert len(set(ids)) == len(ids) == 110


@pytest.mark.parametrize('split', ['train', 'val', 'test'])
def test_coco_files_load_in_pycocotools_with_the_boxes_of_the_rendered_masks(world, split):
    coco_format = pytest.importorskip('pycocotools.coco')
    captions = coco_format.COCO(str(world / 'coco' / f'captions_{split}.json'))
    instances = coco_format.COCO(str(world / 'coco' / f'instances_{split}.json'))
    assert captions.getImgIds() == instances.getImgIds()
    assert [c['name'] for c in instances.loadCats(instances.getCatIds())] == list(SHAPES)
    for index, image_id in enumerate(sorted(instances.getImgIds())):
        scene = sample_scene(SPEC.seed, split, index)
        _, masks = render_scene(scene, SPEC.size)
        assert len(captions.getAnnIds(imgIds=image_id)) == 5
        annotations = instances.loadAnns(instances.getAnnIds(imgIds=image_id))
        assert len(annotations) == len(scene.objects)
        for annotation, mask, obj in zip(annotations, masks, scene.objects, strict=True):
            x, y, width, height = annotation['bbox']
            inside = mask[y : y + height, x : x + width]
            assert inside.sum() == mask.sum() == annotation['area']
            # No row or column at the edges of the box is empty: it is the smallest box.
            assert inside[0].any() and inside[-1].any()
            assert inside[:, 0].any() and inside[:, -1].any()
            assert SHAPES[annotation['category_id'] - 1] == obj.shape
            assert annotation['attributes'] == [obj.colour, obj.size, obj.texture]


def test_the_vocabulary_on_disk_has_every_word(world):
    words = (world / 'vocab.txt').read_text().splitlines()
    assert words[:5] == ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    for record in load(world / 'albef' / 'train.json'):
        assert set(words).issuperset(' '.join(record['caption']).split())


def test_the_meta_file_has_the_spec(world):
    meta = load(world / 'meta.json')
    assert {name: meta[name] for name in ('train', 'val', 'test', 'size', 'seed')} == {
        'train': 12,
        'val': 4,
        'test': 6,
        'size': 64,
        'seed': 3,
    }
    assert not (world / 'unfinished.json').exists()
