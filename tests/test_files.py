"""Files that are new, and files that are whole or not there."""

import pytest

from xmodal.files import open_whole, require_new, write_json


def test_a_file_replaces_another_only_when_it_is_whole(tmp_path):
    file = tmp_path / 'new' / 'file.json'
    write_json(file, {'words': 'é'})
    before = file.read_bytes()
    with pytest.raises(KeyError), open_whole(file) as output:
        output.write('half')
        raise KeyError
    assert file.read_bytes() == before and list(file.parent.iterdir()) == [file]
    write_json(file, [1])
    assert file.read_text() == '[1]' and list(file.parent.iterdir()) == [file]


def test_a_file_that_must_be_new_is_refused_where_it_is_there(tmp_path):
    file = tmp_path / 'file.txt'
    require_new('out', file)
    file.write_text('first')
    with pytest.raises(FileExistsError, match='out=.*file.txt is there already: .* another name'):
        require_new('out', file)
