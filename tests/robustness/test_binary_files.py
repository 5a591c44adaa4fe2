"""Files that are not JSON: arrays, region stores, tables, lists of lines, XML and tar shards."""

import shutil
import struct
from functools import partial

import numpy as np
import pytest
from damages import cut, garbage, other_files, write
from readers import make_folder, of
from trials import require_right

from xmodal.datasets import PrecompDataset
from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.region_tsv import read_region_tsv, write_region_tsv
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.datasets.transforms import LoadRegions
from xmodal.files import read_json
from xmodal.models.base.tokenizer import build_tokenizer
from xmodal.structures import ObjectLabels


def damages(content):
    for damage in (cut, garbage, other_files):
        yield from ((name, new) for name, new in damage(content) if new != content)


@pytest.fixture
def try_damages(trials):
    """Tries all damages of a file."""

    def run(reader, file, read, names=(), is_right=False):
        right = file.read_bytes()
        done = [
            trials.run(reader, f'{file.name}: {name}', read, [file, *names], is_right)
            for name, content in damages(right)
            if write(file, content) is None
        ]
        write(file, right)
        read()
        require_right(done)

    return run


def test_precomputed_features(tmp_path, try_damages):
    features = np.random.default_rng(0).random((2, 2, 3), np.float32) + 1
    np.save(tmp_path / 'dev_ims.npy', features)
    np.save(tmp_path / 'dev_boxes.npy', np.tile(np.float32([0, 0, 1, 1]), (2, 2, 1)))
    (tmp_path / 'dev_caps.txt').write_text('a dog\na cat\nthe sea\na tree\n')
    (tmp_path / 'dev_ids.txt').write_text('7\n7\n8\n8\n')

    def read():
        return [dict(sample) for sample in PrecompDataset('dev', str(tmp_path))]

    # A changed number is another number, and a caption cut off within its line another caption.
    for name in ('dev_ims.npy', 'dev_boxes.npy'):
        try_damages(
            'PrecompDataset', tmp_path / name, read, is_right=lambda result: len(result) == 4
        )
    for name in ('dev_caps.txt', 'dev_ids.txt'):
        names = [tmp_path / 'dev_ids.txt', tmp_path / 'dev_caps.txt']
        try_damages('PrecompDataset', tmp_path / name, read, names, lambda r: len(r) == 4)


def test_wild_headers_of_arrays(tmp_path, trials):
    (tmp_path / 'dev_caps.txt').write_text('a\nb\n')
    file = tmp_path / 'dev_ims.npy'
    done = []
    for header in (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -1, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 'x', }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1, 2, 3), }",
        "{'descr': '<M8', 'fortran_order': False, 'shape': (1, 2, 3), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 2, 3), }",
        '(' * 900,
        '__import__("os").system("touch escaped")',
        '{' + "'a': 1," * 2000 + '}',
        "{'descr'",
    ):
        text = header.encode()
        write(file, b'\x93NUMPY\x01\x00' + struct.pack('<H', len(text) % 65536) + text + bytes(24))
        call = partial(PrecompDataset, 'dev', str(tmp_path))
        done.append(trials.run('PrecompDataset', header, call, [file]))
    require_right(done)


def test_region_store(tmp_path, try_damages):
    make_folder(tmp_path)
    store = tmp_path / 'store'

    def read():
        load = LoadRegions(str(store))
        return [load({'img_path': name})['regions'] for name in '01']

    for name in ('store.json', 'lookup.bin', 'ids.bin'):
        try_damages('RegionStore', store / name, read, [store])
    # A changed number is another number: the size of an image, a feature.
    for name in ('images.bin', 'features.bin', 'regions.bin'):
        try_damages('RegionStore', store / name, read, [store], lambda images: len(images) == 2)
    shutil.rmtree(store)
    with RegionStoreWriter(store, 'test') as writer:
        writer.append(DetectedImage('0', 4, 4, np.ones((2, 3), np.float32)))
        writer.checkpoint(1)

    def go_on():
        with RegionStoreWriter(store, 'test'):
            pass

    try_damages('RegionStoreWriter', store / 'progress.json', go_on, [store])


def test_region_table(tmp_path, try_damages):
    file = tmp_path / 'regions.tsv'
    ones = np.ones(2, np.float32)
    labels = ObjectLabels(np.arange(2), ones, np.arange(2), ones)
    boxes = np.tile(np.float32([0, 0, 2, 2]), (2, 1))
    images = [
        DetectedImage(f'image_{n}', 4, 4, np.ones((2, 3), np.float32), boxes, labels)
        for n in range(2)
    ]
    write_region_tsv(file, images)

    def read():
        return list(read_region_tsv(file, 3))

    # Whole lines are right, and so is another character of a number or an id.
    try_damages('region table', file, read, is_right=lambda found: found or not file.read_bytes())


def test_a_line_without_end_is_not_read_whole(tmp_path, trials):
    for name in ('regions.tsv', 'lines.json', 'list.json'):
        with open(tmp_path / name, 'wb') as file:
            file.truncate(5 << 30)  # sparse: takes no place
    for reader, file, read in (
        ('region table', 'regions.tsv', lambda: list(read_region_tsv(tmp_path / 'regions.tsv'))),
        ('SnliVeDataset', 'lines.json', lambda: of('SnliVeDataset', 'lines.json')(tmp_path, 0)),
        ('AlbefJsonDataset', 'list.json', lambda: of('AlbefJsonDataset', 'list.json')(tmp_path, 0)),
        ('read_json', 'list.json', lambda: read_json(tmp_path / 'list.json')),
    ):
        done = trials.run(reader, f'{file}: 5 GB of null bytes', read, [tmp_path / file])
        require_right([done])


def test_devices_and_folders_in_place_of_annotations(tmp_path, trials):
    (tmp_path / 'folder').mkdir()
    readers = {'AlbefJsonDataset': {}, 'CocoCaptionDataset': {}, 'SnliVeDataset': {}}
    readers |= {'ReferDataset': {'split': 'val', 'instances': '/dev/zero'}}
    done = [
        trials.run(
            name,
            file,
            lambda n=name, f=file, o=more: of(n, f, **o)(tmp_path, 0),
            [file, *more.values()],
        )
        for name, more in readers.items()
        for file in ('/dev/zero', '/dev/null', 'folder', 'missing')
    ]
    require_right(done)


def test_entities(tmp_path, try_damages, trials):
    make_folder(tmp_path)
    (tmp_path / 'Sentences').mkdir()
    (tmp_path / 'Annotations').mkdir()
    (tmp_path / 'test.txt').write_text('1\n')
    (tmp_path / 'Sentences/1.txt').write_text('[/EN#40/people A man] eats .\n')
    box = '<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>3</ymax></bndbox>'
    xml = (
        '<annotation><size><width>4</width><height>4</height></size>'
        f'<object><name>40</name>{box}</object></annotation>'
    )
    (tmp_path / 'Annotations/1.xml').write_text(xml)

    def read():
        return of('EntitiesDataset', 'test.txt')(tmp_path, True)

    # Another letter of a phrase is another phrase.
    names = [tmp_path / 'test.txt']
    try_damages('EntitiesDataset', tmp_path / 'test.txt', read, (), lambda r: len(r) == 1)
    try_damages('EntitiesDataset', tmp_path / 'Annotations/1.xml', read)
    try_damages('EntitiesDataset', tmp_path / 'Sentences/1.txt', read, names, lambda r: len(r) == 1)
    bomb = '<!DOCTYPE a [<!ENTITY a "ha">' + ''.join(
        f'<!ENTITY a{n} "{f"&a{n - 1 or str()};" * 10}">' for n in range(1, 10)
    )
    values = ['', '-1', '0', 'x', '1.5', 'nan', '9' * 5000, '1e9', '&lt;', '99999999999']
    changes = [xml.replace(f'<{tag}>{n}<', f'<{tag}>{v}<')
               for tag, n in (('width', 4), ('height', 4), ('xmin', 1), ('ymax', 3))
               for v in values]  # fmt: skip
    changes += [f'{bomb}]><annotation>&a9;</annotation>', '<a>' * 100_000]
    changes += ['<?xml version="1.0" encoding="no-such"?>' + xml, xml + xml]
    done = []
    for change in changes:
        write(tmp_path / 'Annotations/1.xml', change.encode())
        is_right = lambda r: r[0]['box'][2] > 0  # noqa: E731 - boxes may begin left of the image
        call = partial(
            read,
        )
        name = [tmp_path / 'Annotations/1.xml', *names]
        done.append(trials.run('EntitiesDataset', change[:400], call, name, is_right))
    require_right(done)


def test_an_index_that_is_damaged_is_built_anew(tmp_path, trials):
    make_folder(tmp_path)
    (tmp_path / 'list.json').write_text('[{"image": "0.png", "caption": ["a", "b"]}]')
    read = of('AlbefJsonDataset', 'list.json', captions='each')
    expected = read(tmp_path, False)
    (index,) = tmp_path.glob('*.xmodal_index')
    done = []
    for file in sorted(index.iterdir()):
        right = file.read_bytes()
        for name, content in damages(right):
            if name.startswith('byte') and not name.startswith('byte 0 '):
                continue  # another letter of a caption cannot be seen
            if index.exists() and len(content) != len(right) or file.suffix == '.npy':
                file.write_bytes(content)
                given = f'{file.name}: {name}'
                call = partial(read, tmp_path, False)
                done.append(trials.run('index', given, call, [index], expected.__eq__))
    require_right(done)


def test_vocabulary_of_bert(tmp_path, try_damages):
    file = tmp_path / 'vocab.txt'
    file.write_text('\n'.join(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'dog', 'cat']))

    def read():
        return build_tokenizer(str(file)).get_vocab()

    # Any line is a word, after the special ones.
    try_damages(
        'vocab.txt', file, read, is_right=lambda words: len(words) >= 5 and '[CLS]' in words
    )
