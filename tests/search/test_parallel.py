"""Two processes make the index that one makes, and nothing of a killed one is lost."""

import shutil
import sys
from pathlib import Path

import pytest

from xmodal.search import ImageIndex
from xmodal.search.build import encode_entries
from xmodal.search.catalogue import Catalogue
from xmodal.search.index import CATALOGUE
from xmodal.search.parallel import PARTS, VECTORS
from xmodal.search.sources import find_entries
from xmodal.search.vectors import VectorFile

sys.path.append(str(Path(__file__).parents[1] / 'tools'))
from ranks import run_on_ranks  # noqa: E402

pytest.importorskip('faiss', reason="search needs the extra: pip install -e '.[search]'")


def contents(index):
    images = index.catalogue.images(index.catalogue.ids())
    rows = index._matrix()[[image.id for image in images]]
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
