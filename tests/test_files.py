"""Reading JSON, refusing existing files, and writing files that are complete or absent."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock, Timeout

from xmodal.datasets.json_stream import stream_json_list
from xmodal.files import (
    FileError,
    atomic_open,
    exclusive_dir,
    explain_errors,
    read_json,
    require_new,
    write_json,
)


def test_a_file_replaces_another_only_when_it_is_complete(tmp_path):
    file = tmp_path / 'new' / 'file.json'
    write_json(file, {'words': 'é'})
    before = file.read_bytes()
    with pytest.raises(KeyError), atomic_open(file) as output:
        output.write('half')
        raise KeyError
    assert file.read_bytes() == before and list(file.parent.iterdir()) == [file]
    write_json(file, [1])
    assert file.read_text() == '[1]' and list(file.parent.iterdir()) == [file]


def test_json_takes_the_numbers_of_metrics_of_plug_ins(tmp_path):
    file = tmp_path / 'metrics.json'
    metrics = dict(a=np.float32(0.5), b=np.int64(3), c=torch.tensor(2.5), d=np.array([1, 2]), e=1)
    write_json(file, metrics)
    assert file.read_text() == '{"a": 0.5, "b": 3, "c": 2.5, "d": [1, 2], "e": 1}'


def test_a_full_disk_is_an_error_of_the_file(tmp_path):
    with pytest.raises(OSError, match=r"No space left on device: '.*/file\.json'"):
        with atomic_open(tmp_path / 'file.json'):
            raise OSError(28, 'No space left on device')
    with pytest.raises(OSError, match=r"No such file or directory: '/other'"):
        with atomic_open(tmp_path / 'file.json'):
            raise FileNotFoundError(2, 'No such file or directory', '/other')


def test_an_output_file_that_already_exists_is_refused(tmp_path):
    file = tmp_path / 'file.txt'
    require_new('out', file)
    file.write_text('first')
    with pytest.raises(FileExistsError, match='out=.*file.txt already exists: .* another name'):
        require_new('out', file)


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig'])
def test_json_is_read_with_and_without_a_byte_order_mark(tmp_path, encoding):
    (tmp_path / 'file.json').write_text('{"a": "é"}', encoding)
    assert read_json(tmp_path / 'file.json') == {'a': 'é'}


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (b'', 'Expecting value'),
        (b'version https://git-lfs.github.com/spec/v1', 'a Git LFS pointer: .*git lfs pull'),
    ],
)
def test_a_file_that_is_not_valid_json_is_named(tmp_path, content, message):
    (tmp_path / 'file.json').write_bytes(content)
    with pytest.raises(FileError, match=rf'file\.json is not valid JSON: .*{message}'):
        read_json(tmp_path / 'file.json')


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (b'"caf\xe9"', "can't decode byte 0xe9 at 4"),
        ('"é"'.encode('utf-16'), 'begins as UTF-16 does'),
        (gzip.compress(b'[]', mtime=0), 'begins as a compressed file does; unpack it'),
    ],
)
def test_a_file_that_is_not_utf_8_is_named(tmp_path, content, message):
    file = tmp_path / 'file.json'
    file.write_bytes(content)
    with pytest.raises(FileError, match=rf'file\.json is not UTF-8: .*{message}'):
        read_json(file)
    with pytest.raises(ValueError, match=rf'is not UTF-8 after byte 0: .*{message}'):
        list(stream_json_list(file))
    with (
        pytest.raises(FileError, match=rf'it is not UTF-8: .*{message}.* Expected a table'),
        explain_errors(file, 'a table'),
    ):
        file.read_text(encoding='utf-8')


def test_an_object_with_a_key_twice_is_an_error(tmp_path):
    (tmp_path / 'file.json').write_text('[{"id": 1, "a": 2, "id": 3}]')
    with pytest.raises(FileError, match=r"file\.json is not valid JSON: the key 'id' occurs twice"):
        read_json(tmp_path / 'file.json')


def test_a_content_error_is_explained_once_with_the_file_that_caused_it():
    with (
        pytest.raises(FileError, match=r"^b cannot be read in line 3: key 'k' .* Expected \[\]$"),
        explain_errors('a', '{}'),
        explain_errors('b', '[]', lambda: f' in line {line}'),
    ):
        line = 3
        {}['k']


def test_a_lock_loses_its_name_while_it_is_held(tmp_path, monkeypatch):
    unlink = Path.unlink

    def checked(path, **options):
        if path.suffix == '.lock':
            with pytest.raises(Timeout):
                FileLock(path).acquire(timeout=0)
        unlink(path, **options)

    monkeypatch.setattr(Path, 'unlink', checked)
    with exclusive_dir(tmp_path / 'world'):
        assert (tmp_path / 'world.lock').exists()
    assert not (tmp_path / 'world.lock').exists()
