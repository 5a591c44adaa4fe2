"""Retrieval metrics, against literal loops."""

from statistics import fmean, stdev

import pytest
import torch

from xmodal.evaluation.retrieval import Gallery, RetrievalMetric, ranks, retrieval_metrics


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
        median = middle[half] if len(values) % 2 else (middle[half - 1] + middle[half]) // 2
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
        values = [part[name] for part in parts]
        assert found[name] == pytest.approx(fmean(values))
        assert found[f'{name}_std'] == pytest.approx(stdev(values), abs=1e-4)


def test_each_direction_is_measured_by_its_own_scores(gallery):
    texts_first = gallery._replace(t2i_scores=-gallery.scores)
    for folds in (1, 4):
        found = retrieval_metrics(texts_first, folds)
        expected = {'i2t': retrieval_metrics(gallery, folds)}
        expected['t2i'] = retrieval_metrics(gallery._replace(scores=-gallery.scores), folds)
        recalls = [f'{direction}/R@{k}' for direction in expected for k in (1, 5, 10)]
        for name in (*recalls, 'i2t/mrr', 't2i/mrr', 't2i/median_rank'):
            assert found[name] == expected[name[:3]][name]
        assert found['rsum'] == pytest.approx(sum(found[name] for name in recalls))


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
