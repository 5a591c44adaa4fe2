"""What a search finds is what the retrieval test finds: both stages, all captions, all images."""

import numpy as np
import pytest

from xmodal.engine.launch import build_runner
from xmodal.search import ImageIndex, Query
from xmodal.search.rerank import matching_scores
from xmodal.search.sources import find_entries

pytest.importorskip('faiss', reason="search needs the extra: pip install -e '.[search]'")
RERANK = 3


@pytest.fixture
def tested(inferencer, tmp_path, monkeypatch):
    """The gallery of the test, its captions, and the names of its images."""
    config = inferencer.config
    config.load_from, config.work_dir = str(tmp_path / 'weights.pth'), str(tmp_path / 'run')
    config.custom_hooks = []
    config.test_cfg.scorer.topk = RERANK
    runner = build_runner(config)
    kept = {}
    score = runner.test_loop.scorer.score

    def keep(model, encoded, folds):
        kept['encoded'], kept['gallery'] = encoded, score(model, encoded, folds)
        return kept['gallery']

    monkeypatch.setattr(runner.test_loop.scorer, 'score', keep)
    runner.test()
    return kept['gallery'], kept['encoded'].captions, kept['encoded'].image_names


@pytest.mark.parametrize('engine', ['flat', 'hnsw'])
def test_both_stages_rank_as_the_test_does(inferencer, tested, tiny_world, tmp_path, engine):
    gallery, captions, names = tested
    index = ImageIndex(tmp_path / 'index', inferencer)
    source = tiny_world / 'images/test'
    index.update(source, engine=engine, dtype='float32', progress=False)
    row = {name: i for i, name in enumerate(map(str, names))}
    queries = [Query(caption) for caption in captions]
    assert len(queries) > 20 and len(row) == len(index.catalogue.ids())
    stages = (gallery.itc_scores, 0), (gallery.directions[1], RERANK)
    for scores, rerank in stages:
        scores = scores.numpy()
        for caption, hits in enumerate(index.search(queries, len(row), rerank=rerank)):
            found = [row[hit.image.path] for hit in hits]
            of_caption = scores[found, caption]
            # In the order of the test; one that only float32's last digits make is no order.
            assert (np.diff(of_caption) <= 2e-6).all() and sorted(found) == sorted(row.values())
            shown = [hit.score if rerank == 0 else hit.reranked for hit in hits[: rerank or None]]
            np.testing.assert_allclose(shown, of_caption[: len(shown)], atol=1e-5)


def test_the_second_stage_is_that_of_the_retrieval_among_several_tests(inferencer, tiny_world):
    entries, config = find_entries(str(tiny_world / 'images/test')), inferencer.config
    alone = matching_scores(inferencer, Query('a red ring'), entries)
    loops = dict(skills=dict(type='MinimalPairLoop'), retrieval=config.test_cfg)
    config.test_cfg = dict(type='CompositeEvalLoop', loops=loops)
    assert matching_scores(inferencer, Query('a red ring'), entries) == alone
    config.test_cfg.loops.retrieval.scorer.add_similarity = False
    assert matching_scores(inferencer, Query('a red ring'), entries) != alone


def test_an_index_keeps_its_dtype(inferencer, tiny_world, tmp_path):
    source = tiny_world / 'images/test'
    index = ImageIndex(tmp_path / 'index', inferencer)
    index.update(source, dtype='float32', progress=False)
    index.update(source, progress=False)
    assert (index.folder / 'vectors.f32').stat().st_size == 4 * index.width * index.catalogue.rows()
    with pytest.raises(ValueError, match='has vectors of float32, and float16 was asked for'):
        index.update(source, dtype='float16', progress=False)
