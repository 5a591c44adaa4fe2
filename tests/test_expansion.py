"""Memory is estimated before a file is parsed; files that would fill it are refused."""

import gzip
import json
import pickle
import tarfile
import tracemalloc
import zipfile

import pytest
import torch

from tools.dataset_converters import csv_to_albef
from xmodal import expansion
from xmodal.checkpoint_file import find_damage
from xmodal.datasets.phrases import read_entity_boxes
from xmodal.datasets.precomp_captions import read_filled_lines
from xmodal.datasets.refer_files import read_plain_pickle
from xmodal.datasets.tar_shard import read_shards
from xmodal.files import FileError, read_json

HOSTILE = {
    'lists': '[],',
    'objects': '{},',
    'lists of one': '[1],',
    'words': '"ab",',
    'objects of one': '{"a":1},',
}
CAPTION = '{"image_id": 318556, "id": %d, "caption": "A clean and well decorated bathroom %d"}, '
OBJECT = '{"synsets":["tree.n.01"],"h":557,"id":%d,"ids":[],"w":799,"names":["tree"],"y":0,"x":%d},'
TRUE = {
    'captions': ''.join(CAPTION % (n + 1000, n) for n in range(2000)),
    'objects of Visual Genome': ''.join(OBJECT % (n + 1000, n) for n in range(2000)),
    'boxes': ''.join(f'[{n}.25,12.5,{n}.75,8], ' for n in range(4000)),
}


def memory_of(text):
    """What Python allocates for the objects of a JSON text, at its peak."""
    tracemalloc.start()
    try:
        read = json.loads(text, object_pairs_hook=dict)
        assert read
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def small_limits(monkeypatch):
    """Files from 1 kB are looked at, and may take 100 kB."""
    monkeypatch.setattr(expansion, '_SMALL', 1000)
    monkeypatch.setattr(expansion, '_MAX_MEMORY', 100_000)


@pytest.mark.parametrize('name', [*HOSTILE, *TRUE])
def test_the_estimate_is_near_what_python_allocates(name, tmp_path):
    text = f'[{TRUE[name] if name in TRUE else HOSTILE[name] * 20_000}0]'
    file = tmp_path / 'x.json'
    file.write_text(text)
    estimate = expansion.estimate_json(file) - len(text)  # the text itself
    assert 0.7 < estimate / memory_of(text) < 1.9


def test_an_object_with_many_names_is_counted_by_those_that_differ(tmp_path):
    file = tmp_path / 'x.json'
    file.write_text('{' + ', '.join(f'"{n}": 0' for n in range(50_000)) + '}')
    assert expansion.estimate_json(file) > memory_of(file.read_text())


@pytest.mark.parametrize('name', HOSTILE)
def test_a_file_that_expands_is_refused_with_its_size(name, tmp_path, small_limits):
    file = tmp_path / 'x.json'
    file.write_text(f'[{HOSTILE[name] * 4000}0]')
    with pytest.raises(FileError, match=rf'x\.json has {file.stat().st_size} bytes and would take'):
        read_json(file)


@pytest.mark.parametrize('name', TRUE)
def test_true_annotations_are_read_whatever_their_size(name, tmp_path, small_limits):
    file = tmp_path / 'x.json'
    file.write_text(f'[{TRUE[name]}0]')
    assert len(read_json(file)) > 1000


def test_lists_of_lines_and_pickles_that_expand_are_refused(tmp_path, small_limits):
    (tmp_path / 'x.txt').write_bytes(b'ab\n' * 4000)
    with pytest.raises(FileError, match='x.txt has 12000 bytes and would take'):
        read_filled_lines(tmp_path / 'x.txt')
    (tmp_path / 'x.p').write_bytes(b'\x80\x02(' + b']' * 4000 + b'l.')
    with pytest.raises(FileError, match='x.p has 4005 bytes and would take'):
        read_plain_pickle(tmp_path / 'x.p')
    references = [{'ref_id': n, 'split': 'train', 'sent_ids': [n, n + 1]} for n in range(4000)]
    (tmp_path / 'y.p').write_bytes(pickle.dumps(references, protocol=2))
    assert read_plain_pickle(tmp_path / 'y.p') == references


def test_a_checkpoint_is_not_compressed_and_its_pickle_does_not_expand(tmp_path, small_limits):
    torch.save({'state_dict': {f'layer.{n}': torch.zeros(n) for n in range(300)}}, tmp_path / 'a')
    assert find_damage(tmp_path / 'a') is None
    for compression, records in (
        (zipfile.ZIP_DEFLATED, {'x/data.pkl': b'}.', 'x/data/0': bytes(1 << 20)}),
        (zipfile.ZIP_STORED, {'x/data.pkl': b'\x80\x02(' + b']' * 4000 + b'l.'}),
    ):
        with zipfile.ZipFile(tmp_path / 'b', 'w', compression=compression) as archive:
            for name, content in records.items():
                archive.writestr(name, content)
        expected = 'data.pkl in it is compressed' if compression else 'would take about'
        assert expected in find_damage(tmp_path / 'b')


@pytest.mark.parametrize('kind', [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_name_in_a_shard_that_is_very_long_is_not_read(kind, tmp_path):
    member = tarfile.TarInfo('a.jpg')
    member.type, member.size = kind, 1 << 26
    with gzip.open(tmp_path / 'x.tar', 'wb', compresslevel=1) as shard:
        shard.write(member.tobuf(tarfile.GNU_FORMAT) + bytes(member.size))
    reports = []
    tracemalloc.start()
    try:
        assert list(read_shards([str(tmp_path / 'x.tar')], reports.append)) == []
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()
    assert 'x.tar' in reports[0] and 'a header of 67108864 bytes' in reports[0]


def test_a_row_of_a_table_and_an_xml_file_have_a_limit(tmp_path):
    table, annotations = tmp_path / 'x.csv', tmp_path / 'x.xml'
    for content in ('image,caption\n' + 'ab,' * 400_000, 'image,caption\n' + '"\n",' * 300_000):
        table.write_text(content)
        with pytest.raises(FileError, match='x.csv has a row of more than 1048576 characters'):
            csv_to_albef.gather(table, 'image', 'caption')
    table.write_text('image,caption\n' + 'a.jpg,a cat\n' * 100_000)
    assert len(csv_to_albef.gather(table, 'image', 'caption')[0]['a.jpg']) == 100_000
    annotations.write_text('<annotation>' + '<a/>' * (1 << 21) + '</annotation>')
    with pytest.raises(ValueError, match='x.xml has 8388633 bytes, expected at most 8388608'):
        read_entity_boxes(annotations)
