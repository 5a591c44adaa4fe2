"""The page serves images of the index and nothing else."""

import io
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module

import pytest
from PIL import Image

from xmodal.search import ImageIndex
from xmodal.search.engine import import_faiss

pytest.importorskip('faiss', reason="search needs the extra: pip install -e '.[search]'")
pytest.importorskip('fastapi', reason="the page needs the extra: pip install -e '.[demo]'")
pytest.importorskip('uvicorn', reason="the page needs the extra: pip install -e '.[demo]'")
try:  # which needs httpx2, or httpx where Starlette is older
    from fastapi.testclient import TestClient
except (ImportError, RuntimeError) as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.fixture
def client(inferencer, tiny_world, tmp_path):
    from xmodal.search.server import make_app

    photos = tmp_path / 'photos'
    photos.mkdir()
    for number, colour in enumerate(('red', 'blue', 'green')):
        Image.new('RGB', (32, 32), colour).save(photos / f'<script>{number}.png')
    (tmp_path / 'secret.png').write_bytes(b'secret')
    index = ImageIndex(tmp_path / 'index', inferencer)
    index.update(photos, progress=False)
    app = make_app(index)
    return TestClient(app, base_url='http://127.0.0.1', raise_server_exceptions=False)


@cache
def png(size, colour='red'):
    output = io.BytesIO()
    Image.new('1', size).save(output, 'png') if max(size) > 1000 else Image.new(
        'RGB', size, colour
    ).save(output, 'png')
    return output.getvalue()


def test_a_query_finds_and_shows_images(client):
    hits = client.post('/api/search', params={'text': 'a red ring', 'rerank': 2}).json()
    assert len(hits) == 3 and '/' not in hits[0]['path']
    for kind in ('thumbnail', 'image'):
        answer = client.get(f'/{kind}/{hits[0]["id"]}')
        assert Image.open(io.BytesIO(answer.content)).size == (32, 32)
    words = client.get(f'/api/words/{hits[0]["id"]}', params={'text': 'a red ring'}).json()
    assert [word['word'] for word in words] == ['', 'a', 'red', 'ring']
    (first, *_) = client.post('/api/search', content=png((32, 32), 'blue')).json()
    assert first['path'] == '<script>1.png' and first['score'] == pytest.approx(1, abs=2e-3)
    assert client.post('/api/search', params={'like': first['id']}).json()[0] == first


def test_a_browser_asks_whether_a_number_is_still_the_image_that_it_has(client, tmp_path):
    shown = client.get('/thumbnail/0')
    assert shown.headers['Cache-Control'] == 'no-cache'
    known = {'If-None-Match': shown.headers['ETag']}
    again = client.get('/thumbnail/0', headers=known)
    assert (again.status_code, again.content) == (304, b'')
    with sqlite3.connect(tmp_path / 'index' / 'catalogue.sqlite') as catalogue:  # made anew
        catalogue.execute('UPDATE images SET id = 2 - id + 3')
        catalogue.execute('UPDATE images SET id = id - 3')
    other = client.get('/thumbnail/0', headers=known)
    assert other.status_code == 200 and other.content not in (b'', shown.content)


def test_words_of_what_is_looked_for_alone_have_heat_maps(client):
    def words(text):
        answer = client.get('/api/words/0', params={'text': text})
        return answer.json() if answer.status_code == 200 else answer.status_code

    assert words('a red ring and not a blue disc') == words('a red ring') != words('a red disc')
    assert words('a red ring and also a blue disc') == words('a red ring and a blue disc')
    assert words(' ') == words('and not a disc') == 400


@pytest.mark.parametrize('name', ['manifest.json', 'engine.faiss', 'vectors.f16'])
def test_a_damaged_index_is_not_taken_for_an_image_and_names_no_path(client, tmp_path, name):
    (tmp_path / 'index' / name).unlink()
    answer = client.post('/api/search', params={'text': 'a'})
    assert answer.status_code == 500 and 'the index is not complete' in answer.json()['detail']
    assert str(tmp_path) not in answer.text


@pytest.mark.parametrize(
    'path',
    [f'/{kind}/{name}' for kind in ('thumbnail', 'image', 'api/words')
     for name in ('../secret.png', '..%2f..%2fsecret.png', '%2e%2e/secret.png', '/etc/passwd', '-1',
                  '99', '9' * 40, '1e3', '0x1', '0;DROP TABLE images', '%00', 'secret.png')]
    + ['/secret.png', '/page/../../secret.png', '/docs', '/openapi.json'],
)  # fmt: skip
def test_no_path_reaches_a_file(client, path):
    answer = client.get(path, params={'text': 'a'})
    assert 400 <= answer.status_code < 500
    assert b'secret' not in answer.content.replace(b'secret.png', b'')


@pytest.mark.parametrize(
    'body',
    [b'x', b'\x89PNG\r\n\x1a\n' + bytes(100), b'GIF89a', b'<svg onload="alert(1)">', b'\0' * 1000,
     png((32, 32))[:60], png((30_000, 30_000)), bytes((20 << 20) + 1)],
)  # fmt: skip
def test_bad_uploads_are_refused(client, body):
    answer = client.post('/api/search', content=body)
    assert answer.status_code in (400, 413), answer.text
    assert client.get('/api/info').status_code == 200


@pytest.mark.parametrize(
    'params',
    [{}, {'text': ' '}, {'text': 'a' * 301}, {'text': 'a and not '}, {'like': 99}, {'like': 'x'},
     {'like': 9**30}, {'text': 'a', 'k': 'x'}, {'text': 'a', 'min_width': 9**30},
     {'text': 'a', 'after': '31.1.2020'}],
)  # fmt: skip
def test_bad_queries_are_refused(client, params):
    assert 400 <= client.post('/api/search', params=params).status_code < 500


@pytest.mark.parametrize(
    'text', ["'; DROP TABLE images; --", '<script>alert(1)</script>', '\0', '💥']
)
def test_odd_queries_are_texts(client, text):
    answer = client.post('/api/search', params={'text': text, 'path': text, 'k': -5})
    assert answer.status_code == 200 and isinstance(answer.json(), list)
    assert client.get('/api/info').json()['images'] == 3


def test_other_hosts_are_refused_and_the_page_loads_nothing_from_elsewhere(client):
    assert client.get('/', headers={'Host': 'evil.example'}).status_code == 400
    page = client.get('/')
    assert "default-src 'none'" in page.headers['Content-Security-Policy']
    assert 'http' not in page.text and 'innerHTML' not in page.text


def test_fifty_clients_at_once_get_what_one_gets_also_beside_hostile_ones(client):
    expected = client.post('/api/search', params={'text': 'a red ring'}).json()
    hostile = b'x' * 1000, png((30_000, 30_000)), png((32, 32))[:60]

    def ask(number):
        if number % 2:
            content = hostile[number // 2 % len(hostile)]
            return client.post('/api/search', content=content).status_code in (400, 413)
        return client.post('/api/search', params={'text': 'a red ring'}).json() == expected

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(ask, range(100)))


@pytest.mark.parametrize('method', ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'])
@pytest.mark.parametrize('path', ['/', '/api/search', '/image/1', '/thumbnail/1', '/api/words/1'])
def test_other_methods_are_refused(client, method, path):
    assert client.request(method, path).status_code == 405
    assert client.get('/api/info').json()['images'] == 3


def test_an_image_that_has_become_a_bomb_or_another_file_is_not_served(client, tmp_path):
    (first, *_) = client.post('/api/search', params={'text': 'a'}).json()
    file = tmp_path / 'photos' / first['path']
    for content in (png((30_000, 30_000)), b'secret', b''):
        file.write_bytes(content)
        for kind in ('thumbnail', 'image', 'api/words'):
            answer = client.get(f'/{kind}/{first["id"]}', params={'text': 'a'})
            assert answer.status_code == 400 and b'secret' not in answer.content
            assert str(tmp_path) not in answer.text
        like = client.post('/api/search', params={'like': first['id']})
        assert like.status_code == 400 and str(tmp_path) not in like.text
    file.unlink()
    assert client.get(f'/image/{first["id"]}').status_code == 400


def test_a_package_that_is_missing_is_named_also_where_another_one_needs_it(monkeypatch):
    monkeypatch.delitem(sys.modules, 'xmodal.search.server', raising=False)
    monkeypatch.setitem(sys.modules, 'fastapi.concurrency', None)
    with pytest.raises(RuntimeError, match=r'needs FastAPI: .*\(.*fastapi\.concurrency'):
        import_module('xmodal.search.server')
    monkeypatch.setitem(sys.modules, 'faiss', None)
    with pytest.raises(RuntimeError, match=r'needs FAISS: .*\(.*faiss'):
        import_faiss()
