"""Images in one folder per class."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from xmodal.datasets import ClassFolderDataset
from xmodal.datasets.shapes.class_folders import CLASSES, IMAGES_PER_CLASS, write_class_folders
from xmodal.datasets.shapes.grammar import vocabulary
from xmodal.datasets.shapes.scene import COLOURS
from xmodal.datasets.text import clean_caption
from xmodal.engine.loops.zero_shot import read_templates

PIPELINE = [dict(type='LoadImage'), dict(type='PackImageText', fields=('label',))]


@pytest.fixture
def folders(tmp_path):
    """Three classes, which are not created in the order of their names."""
    for name, count in (('n03', 1), ('n01', 2), ('n02', 1)):
        (tmp_path / 'val' / name).mkdir(parents=True)
        for index in range(count):
            image = np.full((4, 4, 3), index, np.uint8)
            cv2.imwrite(str(tmp_path / 'val' / name / f'{index}.JPEG'), image)
    (tmp_path / 'val' / 'n01' / 'notes.txt').write_text('no image')
    (tmp_path / 'val' / 'LICENSE.txt').write_text('no folder')
    return tmp_path


def test_files_made_by_programs_are_neither_classes_nor_images(folders):
    root = folders / 'val'
    before = ClassFolderDataset(str(root))
    for name in ('.ipynb_checkpoints/0.jpg', '__MACOSX/0.jpg', 'n01/._0.jpg'):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b'')
    (root / 'n02/weird.jpg').mkdir()
    after = ClassFolderDataset(str(root))
    assert (after.class_names, after.images) == (before.class_names, before.images)


@pytest.mark.parametrize('suffix', ['tif', 'TIFF', 'gif', 'avif', 'webp', 'bmp', 'jfif'])
def test_images_of_all_formats_that_are_read_are_found(folders, suffix):
    (folders / f'val/n02/1.{suffix}').write_bytes(b'')
    dataset = ClassFolderDataset(str(folders / 'val'))
    assert [Path(path).name for path, label in dataset.images if label == 1] == [
        '0.JPEG', f'1.{suffix}',
    ]  # fmt: skip


def test_an_underscore_in_the_name_of_a_folder_is_a_space_in_that_of_the_class(folders):
    (folders / 'val/n01').rename(folders / 'val/golden_retriever')
    assert ClassFolderDataset(str(folders / 'val')).class_names[0] == 'golden retriever'


def test_a_class_without_images_is_named(folders):
    (folders / 'val/n01b').mkdir()
    (folders / 'val/n01b/0.svg').write_text('<svg/>')
    with pytest.raises(FileNotFoundError, match=r'val/n01b: the folder of a class has no images'):
        ClassFolderDataset(str(folders / 'val'))


def write_names(folder, content):
    (folder / 'names.json').write_text(json.dumps(content))
    return str(folder / 'names.json')


def test_the_label_of_an_image_is_the_index_of_its_folder(folders):
    dataset = ClassFolderDataset(str(folders / 'val'), pipeline=PIPELINE)
    samples = [dataset[index]['data_samples'] for index in range(len(dataset))]
    assert [sample.label for sample in samples] == [0, 0, 1, 2]
    assert samples[1].image_path.endswith('n01/1.JPEG')
    assert dataset.class_names == ['n01', 'n02', 'n03']
    assert dataset[0]['inputs'].shape == (3, 4, 4)


def test_class_names_are_read_by_folder_or_in_the_order_of_the_folders(folders):
    root = str(folders / 'val')
    by_folder = write_names(folders, {'n03': 'hen', 'n01': 'tench', 'n02': 'shark', 'n99': 'x'})
    expected = ['tench', 'shark', 'hen']
    assert ClassFolderDataset(root, by_folder).class_names == expected
    assert ClassFolderDataset(root, write_names(folders, expected)).class_names == expected


def test_a_name_of_two_folders_is_a_warning(folders, monkeypatch):
    warned = []
    monkeypatch.setattr(
        'xmodal.datasets.class_folders.print_log', lambda text, *_: warned.append(text)
    )
    root = str(folders / 'val')
    ClassFolderDataset(root, write_names(folders, ['crane', 'hen', 'shark']))
    assert not warned
    ClassFolderDataset(root, write_names(folders, ['crane', 'hen', 'crane']))
    (warning,) = warned
    assert "names.json: 1 names have several folders, for instance 'crane'" in warning


def test_missing_folders_files_and_names_are_clear_errors(folders):
    root = str(folders / 'val')
    with pytest.raises(
        FileNotFoundError, match="data_root='nowhere'.*no class folders with images"
    ):
        ClassFolderDataset('nowhere')
    with pytest.raises(FileNotFoundError, match='class_names=none.json does not exist'):
        ClassFolderDataset(root, 'none.json')
    with pytest.raises(ValueError, match="lists 2 names, and there are 3 folders, 'n01' to 'n03'"):
        ClassFolderDataset(root, write_names(folders, ['a', 'b']))
    with pytest.raises(ValueError, match=r"names\.json .*it is 'n01', expected an object"):
        ClassFolderDataset(root, write_names(folders, 'n01'))
    (folders / 'names.json').write_text('')
    with pytest.raises(ValueError, match=r'names\.json is not valid JSON'):
        ClassFolderDataset(root, str(folders / 'names.json'))
    with pytest.raises(ValueError, match='no name for 1 of 3 folders: n02'):
        ClassFolderDataset(root, write_names(folders, {'n01': 'a', 'n03': 'b'}))


# The class folders of the embedded world.


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp('classes')
    write_class_folders(root, seed=3, size=48)
    return root


def test_every_colour_and_shape_is_a_class(world):
    dataset = ClassFolderDataset(str(world / 'images'), str(world / 'class_names.json'))
    assert sorted(dataset.class_names) == sorted(CLASSES) and len(CLASSES) == 128
    labels = [label for _, label in dataset.images]
    assert all(labels.count(label) == IMAGES_PER_CLASS for label in range(128))


def test_an_image_shows_the_colour_of_its_class_and_no_other(world):
    for colour in ('red', 'green', 'navy'):
        image = cv2.imread(str(world / 'images' / f'{colour}_square' / '0.png'))[..., ::-1]
        has_colour = np.abs(image.astype(int) - np.array(COLOURS[colour])).max(2) < 12
        assert has_colour.sum() > 20
        for other in ('magenta', 'yellow', 'cyan'):
            has_other = np.abs(image.astype(int) - np.array(COLOURS[other])).max(2) < 12
            assert has_other.sum() == 0


def test_the_same_seed_gives_the_same_images_and_another_seed_does_not(world, tmp_path):
    for seed, is_equal in ((3, True), (4, False)):
        write_class_folders(tmp_path / str(seed), seed, size=48)
        for name in ('red_disc/0.png', 'blue_star/7.png'):
            content = (tmp_path / str(seed) / 'images' / name).read_bytes()
            assert (content == (world / 'images' / name).read_bytes()) == is_equal


def test_images_of_a_class_differ(world):
    contents = {path.read_bytes() for path in (world / 'images' / 'red_disc').iterdir()}
    assert len(contents) == IMAGES_PER_CLASS


def test_prompts_use_only_words_of_the_grammar():
    known = set(vocabulary())
    for template in read_templates('configs/_base_/prompts/shapes.json'):
        for name in CLASSES:
            words = clean_caption(template.format(name)).split()
            assert set(words) <= known, (template, name)
