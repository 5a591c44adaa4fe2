"""tools/search.py: what it prints, the sheet that it writes, and its errors."""

import html
import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from tools import search
from xmodal.apis import Inferencer
from xmodal.engine.errors import run_or_explain
from xmodal.search import ImageIndex

pytest.importorskip('faiss', reason="search needs the extra: pip install -e '.[search]'")


@pytest.fixture
def call(inferencer, tmp_path, monkeypatch, capsys):
    """Calls the tool with the small model, in an empty folder, and returns what it prints."""
    inferencer.config.dump(tmp_path / 'tiny.py')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('COLUMNS', '200')

    def run(*arguments):
        monkeypatch.setattr(sys, 'argv', ['search.py', *arguments])
        try:
            search.main()
        finally:
            output = capsys.readouterr().out
        return output

    return run


@pytest.fixture
def photos(tmp_path):
    """Three photographs, one with a name of HTML, and one that is none."""
    folder = tmp_path / 'photos'
    folder.mkdir()
    for name, colour in (('a', 'red'), ('b', 'blue'), ('<b>&', 'green')):
        Image.new('RGB', (32, 32), colour).save(folder / f'{name}.png')
    (folder / 'no.jpg').write_bytes(b'none')
    return folder


@pytest.fixture
def indexed(call, photos):
    """What indexing printed."""
    model = ['--config', 'tiny.py', '--checkpoint', 'weights.pth']
    return call('index', 'photos', *model, '--workers', '0', '--batch-size', '2')


def test_an_index_says_what_it_has(indexed, call):
    for part in ('engine', 'flat', 'images', '3', 'left out', '1', 'no.jpg'):
        assert part in indexed
    facts = json.loads(call('info', '--json'))
    assert facts['images'] == 3 and facts['dtype'] == 'float16'
    assert [path for path, _ in facts['broken']] == ['photos/no.jpg']


def test_a_query_is_a_table_json_and_a_sheet(indexed, call, tmp_path):
    table = call('query', 'a red ring', '--rerank', '2')
    hits = json.loads(call('query', 'a red ring', '--rerank', '2', '--json', '--html', 'hits.html'))
    assert len(hits) == 3 and [hit['reranked'] is None for hit in hits] == [False, False, True]
    rows = [line for line in table.splitlines() if '.png' in line]
    for row, hit in zip(rows, hits, strict=True):
        assert hit['path'] in row and f'{hit["score"]:.3f}' in row and '32 × 32' in row
    sheet = (tmp_path / 'hits.html').read_text()
    shown = re.findall(r'<img src="data:image/png;base64,[^"]+" alt=""><figcaption>(.*?)<', sheet)
    scores = [f're-ranked {hit["reranked"]:.3f}' for hit in hits[:2]] + [f'{hits[2]["score"]:.3f}']
    expected = [f'{score} {hit["path"]}' for score, hit in zip(scores, hits, strict=True)]
    assert [html.unescape(text) for text in shown] == expected
    assert '<b>' not in sheet and 'http' not in sheet


def test_a_table_has_whole_paths_and_no_empty_columns(indexed, call, photos, monkeypatch):
    monkeypatch.setenv('COLUMNS', '40')
    folder = Path('photos', 'long' * 20, '[red]')
    folder.mkdir(parents=True)
    Image.new('RGB', (32, 32), 'white').save(folder / 'd.png')
    other = '--index', 'other'
    model = '--config', 'tiny.py', '--checkpoint', 'weights.pth'
    assert f' {folder} ' in call('index', str(folder), *other, *model, '--workers', '0')
    plain = call('query', 'a red ring', '--path', 'd.png', *other)
    assert f' {folder}/d.png ' in plain
    assert 're-ranked' not in plain and 'taken' not in plain and 'cosine' in plain
    exif = Image.Exif()
    exif[306] = '2020:01:31 10:11:12'
    Image.new('RGB', (32, 32), 'white').save(folder / 'd.png', exif=exif)
    call('index', 'photos', '--workers', '0')
    table = call('query', 'a red ring', '--rerank', '2')
    assert ' re-ranked ' in table and ' 2020-01-31 10:11:12 ' in table
    assert call('query', 'a red ring', '--min-width', '33') == 'nothing found\n'


def test_words_that_the_model_does_not_know_are_named_beside_the_json(indexed, monkeypatch, capsys):
    query = 'query', 'a zebra above an okapi', '--rerank', '3', '--json'
    monkeypatch.setattr(sys, 'argv', ['search.py', *query])
    search.main()
    output, errors = capsys.readouterr()
    assert len(json.loads(output)) == 3
    assert errors.count('not in the vocabulary of this model: zebra, okapi\n') == 1
    query = 'query', 'a kudu above a gnu and not a yak', '--rerank', '3', '--json'
    monkeypatch.setattr(sys, 'argv', ['search.py', *query])
    search.main()
    errors = capsys.readouterr().err
    assert re.findall('not in the vocabulary of this model: (.*)', errors) == ['kudu, gnu, yak']


def test_the_sheet_shows_where_a_word_is(indexed, call, tmp_path):
    query = 'query', 'a red ring', '--html'
    call(*query, 'plain.html')
    for word in ('red', 'ring'):
        call(*query, f'{word}.html', '--word', f'{word.title()}!')
    plain, red, ring = (
        re.findall(r'src="(data[^"]+)"', (tmp_path / f'{name}.html').read_text())
        for name in ('plain', 'red', 'ring')
    )
    assert len(plain) == len(red) == 3
    assert all(len({*images}) == 3 for images in zip(plain, red, ring, strict=True))
    with pytest.raises(ValueError, match='--word=disc, expected one of a, red, ring'):
        call(*query, 'no.html', '--word', 'disc')
    call('query', 'a red ring and also a disc', '--html', 'also.html', '--word', 'ring')
    call('query', 'a red ring and a disc', '--html', 'and.html', '--word', 'ring')
    also, both = (
        sorted(re.findall(r'src="(data[^"]+)"', (tmp_path / f'{name}.html').read_text()))
        for name in ('also', 'and')
    )
    assert also == both
    with pytest.raises(ValueError, match='--word needs a text and --html'):
        call('query', 'a red ring', '--word', 'red')


def test_a_word_that_occurs_twice_is_shown_in_both_places():
    maps = [('', 9.0), ('a', 8.0), ('ring', 1.0), ('above', 7.0), ('ring', 2.0)]
    index = SimpleNamespace(
        inferencer=SimpleNamespace(clean_text=str.lower), heat_maps=lambda image, text: maps
    )
    assert search.heat_of(index, 'a ring above a ring', 'Ring', SimpleNamespace(image=None)) == 1.5


def test_an_image_and_filters_are_queries_too(indexed, call):
    (best,) = json.loads(call('query', '--image', 'photos/b.png', '-k', '1', '--json'))
    assert best['path'] == 'photos/b.png' and best['score'] == pytest.approx(1, abs=2e-3)
    found = json.loads(call('query', 'a ring and not a disc', '--path', 'a.png', '--json'))
    assert [hit['path'] for hit in found] == ['photos/a.png']
    assert json.loads(call('query', 'a ring', '--min-width', '33', '--json')) == []


def test_the_last_checkpoint_of_a_folder_that_was_moved_is_found(call, photos, tmp_path):
    run = tmp_path / 'work_dirs/tiny'
    run.mkdir(parents=True)
    (tmp_path / 'weights.pth').rename(run / 'epoch_2.pth')
    (run / 'last_checkpoint').write_text('/another/machine/work_dirs/tiny/epoch_2.pth')
    call('index', 'photos', '--config', 'tiny.py', '--workers', '0')
    facts = json.loads(call('info', '--json'))
    assert facts['images'] == 3 and facts['checkpoint'] == str(run / 'epoch_2.pth')


@pytest.mark.parametrize('form', ['py', 'yaml', 'json'])
def test_the_last_checkpoint_is_that_of_the_work_dir_of_the_config(
    call, photos, inferencer, tmp_path, form
):
    run = tmp_path / 'runs/mine'
    run.mkdir(parents=True)
    (tmp_path / 'weights.pth').rename(run / 'epoch_2.pth')
    (run / 'last_checkpoint').write_text(str(run / 'epoch_2.pth'))
    inferencer.config.work_dir = 'runs/mine'
    inferencer.config.dump(tmp_path / f'tiny.{form}')
    call('index', 'photos', '--config', f'tiny.{form}', '--workers', '0')
    facts = json.loads(call('info', '--json'))
    assert facts['images'] == 3 and facts['checkpoint'] == str(run / 'epoch_2.pth')


def test_an_index_finds_its_model_from_any_folder(indexed, call, tmp_path, monkeypatch):
    (tmp_path / 'other').mkdir()
    monkeypatch.chdir(tmp_path / 'other')
    found = json.loads(call('query', 'a red ring', '--json', '--index', '../work_dirs/index'))
    assert len(found) == 3
    facts = json.loads(call('info', '--json', '--index', '../work_dirs/index'))
    given = facts['config'], facts['checkpoint']
    assert given == (str(tmp_path / 'tiny.py'), str(tmp_path / 'weights.pth'))


def test_an_index_of_a_script_and_of_the_tool_are_one(call, photos, inferencer, capsys):
    index = ImageIndex('work_dirs/index', inferencer)
    index.update(photos, progress=False)
    for arguments in (['query', 'a ring'], ['index', 'photos']):
        with pytest.raises(SystemExit):
            run_or_explain(lambda arguments=arguments: call(*arguments))
        assert 'work_dirs/index was made by a script' in capsys.readouterr().err
    model = '--config', 'tiny.py', '--checkpoint', 'weights.pth'
    assert len(json.loads(call('query', 'a ring', '--json', *model))) == 3
    call('index', str(photos), *model, '--workers', '0')
    assert len(json.loads(call('query', 'a ring', '--json'))) == 3
    Image.new('RGB', (32, 32), 'white').save(photos / 'new.png')
    index.update(photos, progress=False)  # it still names its model
    assert len(json.loads(call('query', 'a ring', '--json'))) == 4


def test_a_script_may_give_an_index_the_name_of_its_model_alone(call, photos):
    index = ImageIndex('work_dirs/index', Inferencer('acerpe-shapes'))
    index.update(photos, progress=False, config='acerpe-shapes')
    assert len(json.loads(call('query', 'a red ring', '--json'))) == 3


def test_a_source_of_which_no_image_can_be_read_is_an_error(call, photos, capsys):
    model = '--config', 'tiny.py', '--checkpoint', 'weights.pth', '--workers', '0'
    Path('lists').mkdir()
    Path('lists/test.json').write_text('[{"image": "a.png"}, {"image": "b.png"}]')
    Path('broken').mkdir()
    Path('broken/no.jpg').write_bytes(b'none')
    sentences = {
        'lists/test.json': '2 left out, the first is lists/a.png: no such file. Its paths are rel',
        'broken': '1 left out, the first is broken/no.jpg: not an image',
    }
    for source, sentence in sentences.items():
        with pytest.raises(SystemExit, match='2'):
            run_or_explain(lambda source=source: call('index', source, *model))
        assert f'error: {source}: no image can be read, {sentence}' in capsys.readouterr().err
    assert ' 2 ' in call('index', 'lists/test.json', '--root', 'photos', *model)


def test_a_model_by_its_name_is_named_and_other_models_are_refused_by_theirs(call, photos):
    printed = call('index', 'photos', '--config', 'acerpe-shapes', '--workers', '0')
    rows = [[cell.strip() for cell in row.split('│')[1:3]] for row in printed.splitlines()]
    assert ['model', 'acerpe-shapes'] in rows and 'None' not in printed
    other = '--config', 'tiny.py', '--checkpoint', 'weights.pth'
    with pytest.raises(ValueError, match=r'made with acerpe-shapes .* tiny.py with weights.pth \('):
        call('query', 'a ring', *other)
    call('index', 'photos', *other, '--workers', '0', '--index', 'mine')
    with pytest.raises(
        ValueError, match=r'made with .*/tiny.py with .*/weights.pth \(.* acerpe-shapes'
    ):
        call('query', 'a ring', '--config', 'acerpe-shapes', '--index', 'mine')


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['query', 'a'], 'work_dirs/index has no index: make one with `xmodal search index`'),
        pytest.param(
            ['serve', '--config', 'tiny.py'],
            'work_dirs/index has no index: make one',
            marks=pytest.mark.skipif(not find_spec('fastapi'), reason="needs the extra '.[demo]'"),
        ),
        (['query', 'a', '--config', 'tiny.py', '--path', 'b'], 'work_dirs/index has no index'),
        (['index', 'photos'], 'work_dirs/index is no index yet: a new one needs --config'),
        (['index', 'nowhere', '--config', 'tiny.py', '--checkpoint', 'weights.pth'], 'nowhere: no'),
        (['index', 'photos', '--config', 'tiny.py'], 'work_dirs/tiny/last_checkpoint is missing'),
        (['index', 'photos', '--config', 'no-such-model'], 'no-such-model'),
    ],
)
def test_what_is_missing_is_a_sentence(call, photos, arguments, message, capsys):
    with pytest.raises(SystemExit):
        run_or_explain(lambda: call(*arguments))
    error = capsys.readouterr().err
    assert message in error and 'Traceback' not in error


@pytest.mark.parametrize(
    'command, page, words',
    [
        (
            'index',
            'a [region store](regions.md)',
            ['.csv', '.tsv', '.json', '.tar', 'region store'],
        ),
        ('query', '`A and also B`', ["'A and not B'", "'A and also B'"]),
    ],
)
def test_the_help_names_what_the_page_does(command, page, words, monkeypatch, capsys):
    assert page in Path(__file__).parents[2].joinpath('docs/search.md').read_text()
    monkeypatch.setattr(sys, 'argv', ['search.py', command, '--help'])
    with pytest.raises(SystemExit):
        search.main()
    printed = ' '.join(capsys.readouterr().out.split())
    assert [word for word in words if word not in printed] == []
