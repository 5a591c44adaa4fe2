"""Paths are found, and what SQLite refuses is a sentence: only a damaged catalogue is made anew."""

import sqlite3
from unicodedata import normalize

import pytest

from xmodal.errors import FileError
from xmodal.search.catalogue import Catalogue, Filter, IndexedImage

ANEW = 'move the index away'


@pytest.fixture
def catalogue(tmp_path):
    catalogue = Catalogue(tmp_path / 'index' / 'catalogue.sqlite')
    catalogue.file.parent.mkdir()
    catalogue.create()
    return catalogue


@pytest.fixture
def connect_by(monkeypatch):
    """Has the catalogue connect in another way."""
    return lambda connect: monkeypatch.setattr('xmodal.search.catalogue.sqlite3.connect', connect)


def refusal(call, *arguments):
    with pytest.raises(FileError, match=r'catalogue\.sqlite cannot be used: ') as error:
        call(*arguments)
    return str(error.value)


def test_one_that_is_locked_is_waited_for(catalogue, connect_by):
    connect = sqlite3.connect
    other = connect(catalogue.file, isolation_level=None)
    other.execute('BEGIN EXCLUSIVE')
    connect_by(lambda file, timeout: connect(file, timeout=0))
    message = refusal(catalogue.rows)
    assert 'locked; another process writes to it: try again' in message and ANEW not in message
    other.close()
    assert catalogue.rows() == 0


def test_one_that_may_not_be_written_or_has_no_folder_is_no_damage(catalogue, connect_by):
    nowhere = Catalogue(catalogue.file.parent / 'gone' / 'catalogue.sqlite')
    assert refusal(nowhere.rows).endswith('; is its folder there, and may this user write to both?')
    connect = sqlite3.connect
    connect_by(lambda file, timeout: connect(f'file:{file}?mode=ro', uri=True))
    message = refusal(catalogue.remove, ['a.png'])
    assert 'readonly' in message and 'may this user write' in message and ANEW not in message


def test_a_full_disk_is_no_damage(catalogue, connect_by):
    connect = sqlite3.connect

    def limited(file, timeout):
        connection = connect(file)
        connection.execute('PRAGMA max_page_count=1')  # no more than it has
        return connection

    connect_by(limited)
    paths = [f'{i:01000}' for i in range(50)]
    images = [IndexedImage(i, p, p, None, 1, 1, '', 1, 1, None) for i, p in enumerate(paths)]
    message = refusal(catalogue.commit, images, [], [], 50)
    assert message.endswith('full; free some space')


@pytest.mark.parametrize('content', [b'', b'no database' * 1000])
def test_one_that_is_damaged_or_empty_is_made_anew(catalogue, content):
    catalogue.file.write_bytes(content)
    assert refusal(catalogue.rows).endswith(f'; {ANEW} and make it anew')


def test_a_part_of_a_path_is_found_however_its_accents_are_written(catalogue):
    composed, apart = (normalize(form, 'Café/Ångström') for form in ('NFC', 'NFD'))
    mixed = f'{composed[:5]}{apart[6:]}'
    paths = [f'{name}.jpg' for name in (composed, apart, mixed, 'Cafe/Angstrom')]
    images = [IndexedImage(i, p, p, None, 1, 1, '', 1, 1, None) for i, p in enumerate(paths)]
    catalogue.commit(images, [], [], len(images))
    assert len({composed, apart, mixed}) == 3
    for asked in (composed, apart, mixed):
        assert catalogue.ids(Filter(path=asked)).tolist() == [0, 1, 2]
    assert catalogue.ids(Filter(path='Cafe')).tolist() == [3]
    assert catalogue.ids(Filter(path='.jpg')).tolist() == [0, 1, 2, 3]
