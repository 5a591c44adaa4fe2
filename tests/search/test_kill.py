"""Indexing that is killed at random moments loses the open batch alone."""

import os
import random
import shutil
import signal
import sys
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from xmodal.apis import Inferencer
from xmodal.errors import FileError
from xmodal.search import ImageIndex, Query
from xmodal.search import build as build_module

pytest.importorskip('faiss', reason="search needs the extra: pip install -e '.[search]'")
BATCH = 2


def update(folder, config, weights, photos, kill_at=None):
    """Indexes, and returns the calls of Python and C that search made until it ended.

    Args:
        kill_at: number of the call before which the process kills itself.
    """
    index = ImageIndex(folder, Inferencer(config, weights))
    calls, ours = [], (f'xmodal{os.sep}search', f'xmodal{os.sep}files')

    def watch(frame, event, argument):
        if event.endswith('call') and any(part in frame.f_code.co_filename for part in ours):
            calls.append(event)
            if len(calls) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    try:
        index.update(photos, batch_size=BATCH, engine='flat', progress=False)
    finally:
        sys.setprofile(None)
    return len(calls)


def contents(index):
    images = index.catalogue.images(index.catalogue.ids())
    rows = index.matrix()[[image.id for image in images]]
    return {
        image.path: (image.hash, row.tobytes()) for image, row in zip(images, rows, strict=True)
    }


def test_a_killed_index_goes_on_to_the_same_index(inferencer, tiny_world, tmp_path, pytestconfig):
    photos, weights = tmp_path / 'photos', tmp_path / 'weights.pth'
    shutil.copytree(tiny_world / 'images/test', photos)
    (photos / 'broken.png').write_bytes(b'no image')
    whole = tmp_path / 'whole'
    total = update(whole, inferencer.config, weights, photos)
    whole = ImageIndex(whole, inferencer)
    expected, images = contents(whole), len(list(photos.rglob('*.png'))) - 1
    assert len(expected) == images and total > 200
    count = 20 if pytestconfig.getoption('--all-trials') else 5
    moments = random.Random(0).sample(range(1, total), 3 * count)
    unfinished = 0
    for number, moment in enumerate(moments):
        # Before the first batch and after the last there is little to lose: half are between them.
        if number >= count and unfinished >= count // 2:
            break
        folder = tmp_path / f'killed_{moment}'
        arguments = folder, inferencer.config, weights, photos, moment
        process = get_context('forkserver').Process(target=update, args=arguments)
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        index = ImageIndex(folder, inferencer)
        if (folder / 'catalogue.sqlite').exists() and index.catalogue.file.stat().st_size:
            rows = index.catalogue.rows()
            unfinished += rows < images
            assert rows % BATCH in (0, images % BATCH)  # whole batches
            kept = contents(index)
            assert kept.items() <= expected.items() and len(kept) == rows
        index.update(photos, batch_size=BATCH, engine='flat', progress=False)
        assert contents(index) == expected
        assert [path for path, _ in index.catalogue.broken()] == [str(photos / 'broken.png')]
        hits = [[hit.image.path for hit in i.search([Query('a ring')])[0]] for i in (index, whole)]
        assert hits[0] == hits[1]
    assert unfinished >= count // 2


@pytest.fixture
def index(inferencer, tiny_world, tmp_path):
    """An index of photographs, and their folder."""
    photos = tmp_path / 'photos'
    shutil.copytree(tiny_world / 'images/test', photos)
    index = ImageIndex(tmp_path / 'index', inferencer)
    index.update(photos, batch_size=BATCH, progress=False)
    return index, photos


def test_a_full_disk_is_a_sentence_and_leaves_the_index(index, monkeypatch):
    index, photos = index
    before = contents(index)
    Image.new('RGB', (32, 32), 'red').save(photos / 'new.png')

    def no_space(descriptor):
        raise OSError(28, 'No space left on device')

    with monkeypatch.context() as patch:
        patch.setattr('xmodal.search.vectors.os.fsync', no_space)
        with pytest.raises(OSError, match=r'vectors\.f16.*No space left|No space left.*vectors'):
            index.update(photos, progress=False)
    assert contents(index) == before and index.search([Query('a ring')])[0]
    index.update(photos, progress=False)
    assert contents(index).keys() == before.keys() | {str(photos / 'new.png')}


def test_a_folder_that_vanishes_meanwhile_is_a_sentence(index, monkeypatch):
    index, photos = index
    for number in range(4):
        Image.new('RGB', (32, 32), (number, 9, 9)).save(photos / f'new{number}.png')
    find = build_module.changed

    def vanish(entries, seen):
        found = find(entries, seen)
        shutil.rmtree(photos)
        return found

    before = contents(index)
    monkeypatch.setattr('xmodal.search.index.changed', vanish)
    index.update(photos, progress=False)
    reasons = dict(index.catalogue.broken())
    assert {Path(path).name for path in reasons} == {f'new{n}.png' for n in range(4)}
    assert contents(index) == before  # a search finds them; the next update forgets them
    with pytest.raises(FileNotFoundError, match='no images'):
        index.update(photos, progress=False)
    assert contents(index) == before


def test_a_file_that_changes_while_it_is_read_is_read_again(index, monkeypatch):
    index, photos = index
    changing = photos / 'changing.png'
    Image.new('RGB', (32, 32), 'red').save(changing)
    header = build_module._header

    def change(content):
        if changing.exists() and content == changing.read_bytes():
            Image.new('RGB', (32, 32), 'blue').save(changing)
        return header(content)

    with monkeypatch.context() as patch:
        patch.setattr(build_module, '_header', change)
        index.update(photos, progress=False)
    index.update(photos, progress=False)
    (image,) = [p for p in index.catalogue.images(index.catalogue.ids()) if p.path == str(changing)]
    expected = index.inferencer.encode_images([changing]).embedding[0].numpy()
    assert image.hash == sha256(changing.read_bytes()).hexdigest()
    np.testing.assert_allclose(index.matrix()[image.id], expected, atol=1e-3)


def test_a_damaged_catalogue_is_a_sentence_and_stays_as_it_is(index):
    index, photos = index
    file = index.catalogue.file
    content = bytearray(file.read_bytes())
    content[:100] = bytes(100)
    file.write_bytes(content)
    with pytest.raises(FileError, match=r'catalogue\.sqlite cannot be used: .*; move the index'):
        index.update(photos, progress=False)
    assert file.read_bytes() == content
