"""Names of models, and the tables that are made of them."""

import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

import xmodal
from tools import zoo
from xmodal.apis import Inferencer
from xmodal.export.run import read_run
from xmodal.zoo.metafile import CONFIGS, find_entry, no_model, read_entries
from xmodal.zoo.table import DOCUMENTS, insert

METAFILES = sorted(Path('configs').glob('*/metafile.yml'))
LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)  # of C, ten times as fast
MODELS = [model for file in METAFILES for model in yaml.load(file.read_text(), LOADER)['Models']]


def test_every_model_of_the_metafiles_is_listed():
    names = xmodal.list_models()
    assert names == [model.get('Alias', model['Name']) for model in MODELS]
    every = [name for entry in read_entries(CONFIGS) for name in entry.names]
    assert len(set(every)) == len(every)


def test_models_are_found_by_a_pattern_a_task_and_a_paper():
    expected = [
        model.get('Alias', model['Name'])
        for model in MODELS
        if model['In Collection'] == 'ACE-RPE' and model['Task'] == 'Image-Text Retrieval'
    ]
    assert xmodal.list_models(task='retrieval', paper='acerpe') == expected
    assert xmodal.list_models(task='Image-Text Retrieval', paper='ACE-RPE') == expected
    assert 'albef-vqa' in xmodal.list_models(task='vqa')
    both = {name for m in MODELS for name in (m['Name'], m.get('Alias', '')) if 'shapes' in name}
    assert set(xmodal.list_models('shapes')) <= both
    assert 'acerpe-shapes' in xmodal.list_models('*shapes')
    assert 'acerpe-shapes' in xmodal.list_models('acerpe_pretrain_*')
    assert all(fnmatchcase(name, 'albef-*') for name in xmodal.list_models('albef-*'))
    assert xmodal.list_models('ALBEF-*') == xmodal.list_models('albef-*') != []
    weighted = [m.get('Alias', m['Name']) for m in MODELS if 'Weights' in m]
    assert xmodal.list_models(pretrained=True) == weighted and 'acerpe-shapes' in weighted
    assert xmodal.list_models('no such name') == []
    for wrong in (dict(task='retreival'), dict(paper='ACE-RTE')):
        with pytest.raises(
            ValueError, match="no model has the .*'.*', expected .*(ACE-RPE|Image-T)"
        ):
            xmodal.list_models(**wrong)


def test_short_and_full_names_are_one_model():
    entry = find_entry('acerpe-shapes')
    assert entry == find_entry('acerpe_pretrain_shapes') and entry.is_shipped
    assert entry.config_file.samefile('configs/acerpe/pretrain_shapes.py')
    assert find_entry('acerpe') is None


@pytest.mark.parametrize(
    ('name', 'near'),
    [
        ('acerpe-shape', 'acerpe-shapes'),
        ('albef4m', 'albef-4m'),
        ('lxmrt', 'lxmert'),
        ('ALBEF-4M', 'albef-4m'),
    ],
)
def test_a_wrong_name_is_an_error_with_near_ones(name, near):
    with pytest.raises(ValueError, match=f"no model '{name}'.* did you mean .*{near}"):
        xmodal.get_model(name)


def test_a_config_without_a_checkpoint_is_called_so():
    with pytest.raises(ValueError, match='pretrain_shapes.py is a config: give its checkpoint'):
        xmodal.get_model('configs/acerpe/pretrain_shapes.py')


def test_a_checkpoint_without_a_config_is_called_so(tmp_path):
    file = tmp_path / 'epoch_1.pth'
    file.touch()
    for read in (xmodal.get_model, read_run, Inferencer):
        with pytest.raises(ValueError, match=f'{file} is no config; .* give the folder of its run'):
            read(str(file))


def test_a_name_that_resembles_none_is_an_error():
    assert 'xmodal.list_models() has all names' in str(no_model('§§§§'))


def test_weights_have_a_licence_and_a_source():
    for model in MODELS:
        about = model.get('Weights Metadata', {})
        assert ('Weights' in model or 'Page' in about) == bool(about), model['Name']
        if about:
            assert about['License'], model['Name']
        if '://' in model.get('Weights', ''):
            assert about['Source'].startswith('https://') and about['Converter'], model['Name']


def test_a_name_without_weights_says_how_to_get_some():
    with pytest.raises(FileNotFoundError, match='xmodal train configs/acerpe/pretrain_4m.py'):
        xmodal.get_model('acerpe_pretrain_4m')
    with pytest.raises(FileNotFoundError, match='by hand from https://drive.google.com/.*FILE'):
        xmodal.get_model('sgraf-saf-f30k')


@pytest.mark.parametrize('document', DOCUMENTS, ids=lambda document: document[0].name)
def test_the_tables_of_documents_are_those_of_the_metafiles(document):
    file, kind, make = document
    text = file.read_text()
    assert insert(text, kind, make()) == text, 'run python tools/analysis/zoo_table.py'
    for model in MODELS:
        if 'Weights' in model:
            assert f'[`{model.get("Alias", model["Name"])}`]' in text


def test_names_need_no_torch():
    code = (
        'import sys, xmodal; assert "yaml" not in sys.modules;'
        'assert "acerpe-shapes" in xmodal.list_models(); assert "torch" not in sys.modules'
    )
    subprocess.run([sys.executable, '-c', code], check=True)
    with pytest.raises(AttributeError, match="'xmodal' has no attribute 'models_by_name'"):
        xmodal.models_by_name  # noqa: B018


def test_the_tool_prints_whole_addresses(monkeypatch, capsys):
    monkeypatch.setenv('COLUMNS', '80')
    monkeypatch.setattr(sys, 'argv', ['zoo.py', 'albef-4m'])
    zoo.main()
    assert find_entry('albef-4m').weights in re.sub(r'[\s│]', '', capsys.readouterr().out)
