"""The candidates of both directions, and the scores of both stages."""

import torch

from xmodal.evaluation.reranking import find_candidates, two_stage_scores


def test_candidates_are_the_best_texts_of_every_image_and_images_of_every_text():
    torch.manual_seed(0)
    scores, text_to_image = torch.randn(20, 60), torch.arange(20).repeat_interleave(3)
    texts, images = find_candidates(scores, text_to_image, 3)
    for i, row in enumerate(scores):
        assert texts[i].nonzero().squeeze(1).tolist() == sorted(row.topk(3).indices.tolist())
    for t, column in enumerate(scores.T):
        assert images[:, t].nonzero().squeeze(1).tolist() == sorted(column.topk(3).indices.tolist())


def test_candidates_are_from_the_fold_of_the_query_also_where_it_has_fewer_than_k():
    torch.manual_seed(0)
    scores, text_to_image = torch.randn(20, 60), torch.arange(20).repeat_interleave(3)
    parts = [slice(5 * fold, 5 * fold + 5) for fold in range(4)]
    columns = [slice(15 * fold, 15 * fold + 15) for fold in range(4)]
    for topk in (3, 100):
        found = find_candidates(scores, text_to_image, topk, folds=4)
        expected = [torch.zeros(20, 60, dtype=torch.bool) for _ in range(2)]
        for rows, texts in zip(parts, columns, strict=True):
            alone = find_candidates(scores[rows, texts], torch.arange(15) // 3, topk)
            for whole, part in zip(expected, alone, strict=True):
                whole[rows, texts] = part
        assert all(a.equal(b) for a, b in zip(found, expected, strict=True))
    assert found[0].sum() == found[1].sum() == 4 * 5 * 15


def test_scores_of_the_second_stage_are_read_for_candidates_only():
    first_stage = torch.tensor([[0.3, 0.2, 0.1]])
    candidates = torch.tensor([[False, True, True]])
    scores = two_stage_scores(first_stage, candidates, torch.tensor([[torch.nan, -7.0, 5.0]]))
    assert scores[0, 1:].tolist() == [-7, 5] and scores[0, 0] < -7
