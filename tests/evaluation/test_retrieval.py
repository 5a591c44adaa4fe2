"""Retrieval metrics and re-ranking, against literal loops."""

import pytest
import torch

from xmodal.engine.launch import build_runner
from xmodal.engine.loops.scorers import match_pairs as match_pairs_module
from xmodal.engine.loops.scorers.match_pairs import match_pairs
from xmodal.evaluation.reranking import candidate_pairs, two_stage_scores
from xmodal.evaluation.retrieval import Gallery, RetrievalMetric, ranks, retrieval_metrics
from xmodal.registry import MODELS
from xmodal.structures import PackedTexts


def literal_metrics(scores, text_to_image):
    """Recalls, median and MRR by sorting, with ties against the model."""
    images, texts = scores.shape
    query_ranks = {'i2t': [], 't2i': []}
    for i in range(images):
        order = sorted(range(texts), key=lambda t: (-scores[i, t].item(), text_to_image[t] == i))
        query_ranks['i2t'].append(1 + next(p for p, t in enumerate(order) if text_to_image[t] == i))
    for t in range(texts):
        order = sorted(range(images), key=lambda i: (-scores[i, t].item(), text_to_image[t] == i))
        query_ranks['t2i'].append(1 + order.index(int(text_to_image[t])))
    metrics, recalls = {}, []
    for direction, values in query_ranks.items():
        for k in (1, 5, 10):
            recall = 100 * sum(rank <= k for rank in values) / len(values)
            metrics[f'{direction}/R@{k}'] = recall
            recalls.append(recall)
        middle = sorted(values)
        half = len(values) // 2
        median = middle[half] if len(values) % 2 else (middle[half - 1] + middle[half]) / 2
        metrics[f'{direction}/median_rank'] = median
        metrics[f'{direction}/mrr'] = 100 * sum(1 / rank for rank in values) / len(values)
    return metrics | {'rsum': sum(recalls), 'mean_recall': sum(recalls) / 6}


@pytest.fixture(params=[False, True], ids=['distinct', 'ties'])
def gallery(request):
    torch.manual_seed(0)
    text_to_image = torch.arange(20).repeat_interleave(torch.tensor([1, 2, 5, 3] * 5))
    scores = torch.randn(20, len(text_to_image))
    scores[text_to_image, torch.arange(len(text_to_image))] += 1
    return Gallery(scores.round() if request.param else scores, text_to_image)


def test_metrics_are_those_of_a_literal_loop(gallery):
    assert retrieval_metrics(gallery) == pytest.approx(literal_metrics(*gallery[:2]))


def test_folds_are_searched_separately_and_in_order(gallery):
    parts = []
    for first in range(0, 20, 5):
        columns = [
            t for t, i in enumerate(gallery.text_to_image.tolist()) if first <= i < first + 5
        ]
        scores = gallery.scores[first : first + 5][:, columns]
        parts.append(literal_metrics(scores, gallery.text_to_image[columns] - first))
    found = retrieval_metrics(gallery, folds=4)
    for name in parts[0]:
        assert found[name] == pytest.approx(sum(part[name] for part in parts) / 4)


def test_equal_scores_everywhere_give_the_worst_rank_and_not_the_best():
    found = ranks(torch.zeros(3, 9), torch.eye(3, 9, dtype=torch.bool))
    assert found.tolist() == [9, 9, 9]


def test_scores_that_are_nan_and_folds_that_do_not_divide_are_errors(gallery):
    with pytest.raises(ValueError, match='1 of 18 scores are NaN'):
        scores = torch.zeros(3, 6)
        scores[0, 0] = torch.nan
        ranks(scores, torch.ones(3, 6, dtype=torch.bool))
    with pytest.raises(ValueError, match='20 images do not divide into 3 folds'):
        retrieval_metrics(gallery, folds=3)


def test_candidates_are_the_best_of_every_row_and_column(gallery):
    expected = set()
    for i, row in enumerate(gallery.scores):
        expected |= {(i, t) for t in row.topk(3).indices.tolist()}
    for t, column in enumerate(gallery.scores.T):
        expected |= {(i, t) for i in column.topk(3).indices.tolist()}
    found = candidate_pairs(gallery.scores, gallery.text_to_image, 3)
    assert sorted(map(tuple, found.tolist())) == sorted(expected) and len(found) == len(expected)


def test_candidates_are_from_the_fold_of_the_query(gallery):
    # Among equal scores any may be a candidate.
    gallery = gallery._replace(scores=torch.randn(gallery.scores.shape))
    found = set(
        map(tuple, candidate_pairs(gallery.scores, gallery.text_to_image, 3, folds=4).tolist())
    )
    expected = set()
    for first in range(0, 20, 5):
        columns = [
            t for t, i in enumerate(gallery.text_to_image.tolist()) if first <= i < first + 5
        ]
        scores = gallery.scores[first : first + 5][:, columns]
        pairs = candidate_pairs(scores, gallery.text_to_image[columns] - first, 3).tolist()
        expected |= {(first + i, columns[t]) for i, t in pairs}
    assert found == expected
    everything = candidate_pairs(gallery.scores, gallery.text_to_image, 100, folds=4)
    fold = gallery.text_to_image // 5
    assert len(everything) == sum(5 * int((fold == f).sum()) for f in range(4))


def test_reranked_pairs_come_first_in_the_order_of_their_itm_scores(gallery):
    pairs = candidate_pairs(gallery.scores, gallery.text_to_image, 4)
    itm = torch.randn(len(pairs))
    scores = two_stage_scores(gallery.scores, pairs, itm)
    reranked = {tuple(pair): value for pair, value in zip(pairs.tolist(), itm, strict=True)}
    for i, row in enumerate(scores):
        order = row.argsort(descending=True).tolist()
        first = sorted((t for k, t in reranked if k == i), key=lambda t: -reranked[i, t])
        assert order[: len(first)] == first
        rest = [gallery.scores[i, t] for t in order[len(first) :]]
        assert rest == sorted(rest, reverse=True)


@torch.no_grad()
@pytest.mark.parametrize('add', [False, True])
def test_the_loop_with_all_candidates_ranks_every_pair_by_itm(tiny_config, add):
    tiny_config.test_cfg.scorer.update(topk=50, pair_batch=7, add_similarity=add)
    runner = build_runner(tiny_config)
    loop = runner.build_test_loop(tiny_config.test_cfg)
    model = runner.model.eval()
    encoded = loop.encode(model)
    gallery, captions = loop.scorer.score(model, encoded), encoded.captions
    assert len(captions) == 50 and len(set(encoded.image_names)) == 10
    dataset = loop.dataloader.dataset
    for i in range(0, 10, 3):
        sample = dataset[i]
        for t in range(0, 50, 7):
            sample['data_samples'].text = [captions[t]]
            inputs = model.data_preprocessor(
                dict(inputs=sample['inputs'][None], data_samples=[sample['data_samples']]), False
            )['inputs']
            image = model.encode_image(inputs.images)
            text = model.encode_text(inputs.input_ids, inputs.attention_mask)
            fused = model.fuse(image.tokens, text.tokens)
            no, yes = model.heads['itm'](fused.text_tokens)[0]
            expected = yes - no
            if add:
                cosine = (image.embedding * text.embedding).sum()
                expected = expected + cosine / model.heads['itc'].temperature()
            assert gallery.scores[i, t].item() == pytest.approx(expected.item(), abs=1e-4)


def test_pairs_have_the_same_scores_in_any_order_and_in_blocks(tiny_config, monkeypatch):
    model = MODELS.build(tiny_config.model).eval()
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    with torch.no_grad():
        images = model.encode_image(torch.randn(4, 3, 32, 32)).tokens
    mask = torch.arange(9) < torch.tensor([4, 9, 6, 7, 5, 8, 4])[:, None]
    input_ids = torch.randint(5, 60, (7, 9))
    texts = PackedTexts.from_padded(input_ids, mask)
    pairs = torch.ones(4, 7).nonzero()[torch.randperm(28)]
    whole = match_pairs(model, images, texts, pairs, pair_batch=100)
    monkeypatch.setattr(match_pairs_module, 'TEXTS_AT_ONCE', 3)
    torch.testing.assert_close(
        match_pairs(model, images, texts, pairs, pair_batch=4), whole, atol=1e-5, rtol=1e-4
    )
    for (i, t), score in zip(pairs.tolist(), whole, strict=True):
        words = int(mask[t].sum())
        text = model.encode_text(input_ids[t : t + 1, :words], mask[t : t + 1, :words]).tokens
        fused = model.fuse(images.select(torch.tensor([i])), text)
        no, yes = model.heads['itm'](fused.text_tokens)[0]
        assert score.item() == pytest.approx((yes - no).item(), abs=1e-4)


def test_metrics_with_all_candidates_are_those_of_every_pair_fold_by_fold(tiny_config):
    tiny_config.test_evaluator.folds = 5
    tiny_config.test_cfg.scorer.update(topk=50, add_similarity=False)
    runner = build_runner(tiny_config)
    loop = runner.build_test_loop(tiny_config.test_cfg)
    found = loop.evaluate(runner.model.eval())
    assert loop.folds == {5}
    gallery = loop.scorer.score(runner.model, loop.encode(runner.model))  # every pair of all images
    expected = retrieval_metrics(gallery, folds=5)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_reranking_refuses_metrics_of_different_folds(tiny_config):
    tiny_config.test_evaluator = [
        dict(type='RetrievalMetric', folds=5, prefix='fifths'),
        dict(type='RetrievalMetric', prefix='all'),
    ]
    runner = build_runner(tiny_config)
    with pytest.raises(ValueError, match=r'folds=\[1, 5\], but ITMReranker'):
        runner.test()
    tiny_config.test_cfg.scorer.topk = 0
    tiny_config.experiment_name = 'ITC alone'
    metrics = build_runner(tiny_config).test()
    assert {'fifths/rsum', 'fifths/rsum_std', 'all/rsum'} <= set(metrics)


def test_both_stages_have_figures_and_a_subclass_adds_its_own_to_both(gallery):
    class TopScore(RetrievalMetric):
        def measure(self, gallery):
            return super().measure(gallery) | {'top': float(gallery.scores.max())}

    metric = TopScore(folds=4, prefix='quarters')
    metric.process(None, [gallery._replace(itc_scores=-gallery.scores)])
    found = metric.evaluate(1)
    expected = retrieval_metrics(gallery, folds=4)
    assert found['quarters/top'] == gallery.scores.max()
    assert found['quarters/first_stage/top'] == -gallery.scores.min()
    assert {name: found[f'quarters/{name}'] for name in expected} == expected
    assert len(found) == 2 * (len(expected) + 1)
    assert metric.results == []
