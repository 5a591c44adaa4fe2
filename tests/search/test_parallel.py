"""Two processes make the index that one makes, and nothing of a killed one is lost."""

import shutil
import sys
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local

import numpy as np
import pytest

from xmodal.search import ImageIndex, parallel
from xmodal.search.build import encode_entries
from xmodal.search.catalogue import Catalogue
from xmodal.search.engine import Engine
from xmodal.search.index import CATALOGUE
from xmodal.search.parallel import PARTS, VECTORS, build_on_ranks
from xmodal.search.sources import find_entries
from xmodal.search.vectors import VectorFile

sys.path.append(str(Path(__file__).parents[1] / 'tools'))
from ranks import run_on_ranks  # noqa: E402

pytest.importorskip('faiss', reason="search needs the extra: pip install -e '.[search]'")


def contents(index):
    images = index.catalogue.images(index.catalogue.ids())
    rows = index.matrix()[[image.id for image in images]]
    assert index.engine.faiss_index.ntotal == len(images)
    return {p.path: (p.hash, row.tolist()) for p, row in zip(images, rows, strict=True)}


def test_two_processes_index_as_one(inferencer, tiny_world, tmp_path):
    photos, folder = tmp_path / 'photos', tmp_path / 'two'
    shutil.copytree(tiny_world / 'images/test', photos)
    (photos / 'broken.png').write_bytes(b'no image')
    inferencer.config.dump(tmp_path / 'tiny.py')
    one, two = ImageIndex(tmp_path / 'one', inferencer), ImageIndex(folder, inferencer)
    one.update(photos, batch_size=1, progress=False)
    # A third process of an earlier call was killed after two images.
    part = folder / PARTS / '2'
    part.mkdir(parents=True)
    catalogue = Catalogue(part / CATALOGUE)
    catalogue.create()
    left = find_entries(str(photos))[-2:]
    vectors = VectorFile(part / VECTORS, 'float16')
    encode_entries(inferencer, left, {}, catalogue, vectors, 1, progress=False)
    model = '--config', tmp_path / 'tiny.py', '--checkpoint', tmp_path / 'weights.pth'
    options = '--index', folder, '--workers', '0', '--batch-size', '1'
    run_on_ranks('tools/search.py', 'index', photos, *model, *options, folder=tmp_path)
    assert contents(two) == contents(one)
    assert two.catalogue.broken() == one.catalogue.broken() != []
    assert two.catalogue.rows() == one.catalogue.rows()  # none was encoded twice
    assert not list((folder / PARTS).iterdir())


class Ranks:
    """A group of threads in place of processes."""

    def __init__(self, size):
        self.size, self.meeting, self.own = size, threading.Barrier(size, timeout=60), local()
        self.sent = [None] * size

    def get_rank(self):
        return self.own.rank

    def get_world_size(self):
        return self.size

    def barrier(self):
        self.meeting.wait()

    def gather_object(self, item, gathered):
        self.sent[self.get_rank()] = item
        self.barrier()
        if gathered is not None:
            gathered[:] = self.sent

    def run(self, function, *args):
        def be(rank):
            self.own.rank = rank
            return function(*args)

        with ThreadPoolExecutor(self.size) as pool:
            return list(pool.map(be, range(self.size)))


def test_processes_find_known_images_at_their_new_place_in_a_shard(
    inferencer, tiny_world, tmp_path, monkeypatch
):
    files = sorted((tiny_world / 'images/test').rglob('*.png'))[:3]
    monkeypatch.setattr(parallel, 'dist', Ranks(2))
    index, contents = ImageIndex(tmp_path / 'index', inferencer), []
    for order in (files, files[::-1]):
        with tarfile.open(tmp_path / 'shard.tar', 'w') as tar:
            for file in order:
                tar.add(file, file.name)
        parallel.dist.run(parallel.update_on_ranks, index, tmp_path / 'shard.tar', 2)
        images = index.catalogue.images(index.catalogue.ids())
        contents.append({image.path: image.entry.read() for image in images})
    expected = {f'{tmp_path / "shard.tar"}::{file.name}': file.read_bytes() for file in files}
    assert contents == [expected, expected]
    assert index.catalogue.rows() == 3  # none was encoded twice


def test_processes_know_the_root_of_a_list(inferencer, tiny_world, tmp_path, monkeypatch):
    names = [str(f) for f in sorted((tiny_world / 'images/test').rglob('*.png'))[:3]]
    relative = [name.removeprefix(f'{tiny_world}/') for name in names]
    (tmp_path / 'list.csv').write_text('\n'.join(['image', *relative]))
    monkeypatch.setattr(parallel, 'dist', Ranks(2))
    index = ImageIndex(tmp_path / 'index', inferencer)
    arguments = index, tmp_path / 'list.csv', 2, 0, None, None, tiny_world
    parallel.dist.run(parallel.update_on_ranks, *arguments)
    assert sorted(contents(index)) == names


def test_faiss_is_missed_before_an_image_is_encoded(inferencer, tiny_world, tmp_path, monkeypatch):
    index = ImageIndex(tmp_path / 'index', inferencer)
    monkeypatch.setitem(sys.modules, 'faiss', None)
    monkeypatch.setattr(parallel, 'dist', Ranks(1))
    monkeypatch.setattr(inferencer, 'encode_batch', pytest.fail)
    source = tiny_world / 'images/test'
    with pytest.raises(RuntimeError, match='search needs FAISS'):
        parallel.dist.run(parallel.update_on_ranks, index, source)
    with pytest.raises(RuntimeError, match='search needs FAISS'):
        index.update(source, progress=False)


@pytest.mark.parametrize('kind', ['flat', 'ivfpq', 'hnsw'])
def test_shares_are_merged_into_what_one_process_builds(kind, tmp_path, monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(3000, 16)).astype(np.float16)
    ids = np.delete(np.arange(3000), [5, 700])  # two images are gone
    ranks = Ranks(3)
    monkeypatch.setattr(parallel, 'dist', ranks)
    merged, *others = ranks.run(build_on_ranks, vectors, ids, kind, tmp_path)
    assert others == [None, None]
    assert not list(tmp_path.iterdir())
    one = Engine.build(vectors, ids, kind)
    queries = vectors[:50].astype(np.float32)
    assert merged.faiss_index.ntotal == len(ids)
    for found, expected in zip(merged.search(queries, 5), one.search(queries, 5), strict=True):
        np.testing.assert_array_equal(found, expected)
    # The candidates of the rough search, too: the same lists with the same codes.
    for found, expected in zip(
        merged.faiss_index.search(queries, 20), one.faiss_index.search(queries, 20), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
