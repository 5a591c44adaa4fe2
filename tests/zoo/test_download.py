"""Downloads from a server that breaks connections, changes files, or has none."""

import hashlib
import os
import random
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from filelock import FileLock

from xmodal.cache import cache_folder
from xmodal.zoo import download as module
from xmodal.zoo.download import download, once

CONTENT = random.Random(0).randbytes(300_000)
HASH = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """A server of one file that can end a connection early."""

    def do_GET(self):
        server = self.server
        start = 0
        wanted = self.headers.get('Range')
        server.requests.append(wanted)
        if self.path != '/weights.pth':
            self.send_error(404)
            return
        is_same = self.headers.get('If-Range', server.tag) == server.tag
        if wanted and is_same:
            start = int(wanted.removeprefix('bytes=').rstrip('-'))
            if start >= len(server.content):
                self.send_error(416)
                return
        body = server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('ETag', server.tag)
        self.end_headers()
        self.wfile.write(body[: server.lengths.pop(0)] if server.lengths else body)
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    """A local server; ``lengths`` are the bytes after which it ends the next connections."""
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.content, server.tag, server.lengths, server.requests = CONTENT, '"a"', [], []
    server.url = f'http://127.0.0.1:{server.server_port}/weights.pth'
    Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def left(folder):
    """Files of a folder without locks, which stay."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != '.lock')


def test_a_download_shows_its_progress_and_is_kept(server, tmp_path, capsys):
    file = tmp_path / 'cache' / 'weights.pth'
    assert download(server.url, file, HASH) == file
    assert file.read_bytes() == CONTENT and left(file.parent) == ['weights.pth']
    assert 'weights.pth: 100%' in capsys.readouterr().err
    download(server.url, file, HASH)
    assert server.requests == [None]


def test_a_cut_connection_goes_on_where_it_was_cut(server, tmp_path):
    server.lengths = [100_000, 50_000]
    file = tmp_path / 'weights.pth'
    download(server.url, file, HASH)
    assert server.requests == [None, 'bytes=100000-', 'bytes=150000-']
    assert file.read_bytes() == CONTENT and left(tmp_path) == ['weights.pth']


def test_a_new_download_goes_on_where_the_last_one_failed(server, tmp_path):
    server.lengths = [1000] * 4
    file = tmp_path / 'weights.pth'
    with pytest.raises(ConnectionError, match='after 4 attempts. 4000 bytes are kept in .*part'):
        download(server.url, file, HASH)
    assert not file.exists()
    download(server.url, file, HASH)
    assert server.requests[-1] == 'bytes=4000-' and file.read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_comes_whole(server, tmp_path):
    server.lengths = [1000] * 4
    file = tmp_path / 'weights.pth'
    with pytest.raises(ConnectionError):
        download(server.url, file)
    server.content, server.tag = CONTENT[::-1], '"b"'
    download(server.url, file)
    assert file.read_bytes() == CONTENT[::-1]


def test_what_is_longer_than_the_file_is_thrown_away(server, tmp_path):
    (tmp_path / 'weights.pth.part').write_bytes(CONTENT + b'more')
    file = tmp_path / 'weights.pth'
    download(server.url, file, HASH)
    assert server.requests == [f'bytes={len(CONTENT) + 4}-', None]
    assert file.read_bytes() == CONTENT


def test_a_wrong_hash_is_an_error_and_nothing_is_kept(server, tmp_path):
    with pytest.raises(ValueError, match=f'SHA-256 {HASH}, expected 00: .* not kept'):
        download(server.url, tmp_path / 'weights.pth', '00')
    assert 'weights.pth' not in left(tmp_path) and 'weights.pth.part' not in left(tmp_path)


def test_a_missing_file_is_asked_for_once(server, tmp_path):
    url = server.url.replace('weights', 'other')
    with pytest.raises(FileNotFoundError, match=f'{url}: HTTP 404 .* by hand and give its path'):
        download(url, tmp_path / 'other.pth')
    assert len(server.requests) == 1


def test_a_failure_that_is_kept_keeps_no_lock(tmp_path):
    file = tmp_path / 'weights.pth'

    def fail():
        raise ConnectionError('no network')

    with pytest.raises(ConnectionError) as failure:  # its traceback lives on, as in a notebook
        once(file, fail)
    with FileLock(f'{file}.lock', timeout=0):
        assert failure.value


def test_a_lock_that_stays_can_be_taken_by_another_user(tmp_path):
    file = tmp_path / 'weights.pth'
    once(file, file.touch)
    assert (tmp_path / 'weights.pth.lock').stat().st_mode & 0o777 == 0o666


def test_a_server_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConnectionError, match='127.0.0.1:1/x: .*0 bytes are kept'):
        download('http://127.0.0.1:1/x', tmp_path / 'x')


def test_a_cache_that_cannot_be_written_serves_what_it_has(server, tmp_path, monkeypatch):
    file = tmp_path / 'weights.pth'
    file.write_bytes(CONTENT)
    monkeypatch.setattr(module, 'FileLock', None)  # it is not even asked for a lock
    download(server.url, file, HASH)
    assert server.requests == [] and left(tmp_path) == ['weights.pth']
    monkeypatch.undo()
    (tmp_path / 'file').touch()
    with pytest.raises(PermissionError, match='cannot be written to .*XMODAL_HOME'):
        download(server.url, tmp_path / 'file' / 'weights.pth', HASH)
    if os.path.isdir('/proc/self'):
        with pytest.raises(PermissionError, match='cannot be written to .*XMODAL_HOME'):
            download(server.url, type(file)('/proc/xmodal/weights.pth'), HASH)


@pytest.mark.parametrize('name', ['weights.pth.part', 'weights.pth.part.tag'])
def test_what_another_user_has_left_of_a_file_is_named(server, tmp_path, monkeypatch, name):
    server.lengths = [1000] * 4
    with pytest.raises(ConnectionError):
        download(server.url, tmp_path / 'weights.pth', HASH)

    def refuse(file, *args, **kwargs):  # as the system does, but not to root
        if Path(file).name == name:
            raise PermissionError(13, 'Permission denied', str(file))
        return open(file, *args, **kwargs)

    monkeypatch.setattr(module, 'open', refuse, raising=False)
    monkeypatch.setattr(Path, 'open', refuse)
    with pytest.raises(PermissionError, match=f'/{name} was left by .*: delete it, or .*XMODAL_HO'):
        download(server.url, tmp_path / 'weights.pth', HASH)
    assert (tmp_path / 'weights.pth.part').stat().st_size == 4000


def test_of_two_processes_one_downloads(server, tmp_path):
    code = (
        'import sys; from pathlib import Path; from xmodal.zoo.download import download;'
        'download(sys.argv[1], Path(sys.argv[2]), sys.argv[3])'
    )
    arguments = [sys.executable, '-c', code, server.url, str(tmp_path / 'weights.pth'), HASH]
    server.lengths = [150_000]
    processes = [subprocess.Popen(arguments, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert server.requests == [None, 'bytes=150000-']
    assert (tmp_path / 'weights.pth').read_bytes() == CONTENT


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv('XMODAL_HOME', str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv('XMODAL_HOME')
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    assert cache_folder() == tmp_path / 'cache' / 'xmodal'
    monkeypatch.setenv('XDG_CACHE_HOME', '')  # as unset, says the XDG Base Directory Specification
    assert cache_folder() == Path.home() / '.cache' / 'xmodal'
