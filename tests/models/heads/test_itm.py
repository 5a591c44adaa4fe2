"""Image-text matching and its hard negatives."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import cross_entropy

from xmodal.models.fusion import FusionRequest
from xmodal.models.heads import ITMHead
from xmodal.models.heads.negatives import sample_negatives
from xmodal.structures import Fused, Tokens


def test_negatives_are_sampled_by_the_softmax_over_all_but_the_positives():
    logits = torch.tensor([2.0, 0.0, 1.0, -1.0])
    positives = torch.tensor([True, False, False, False])
    sampled, has_negative = sample_negatives(logits.expand(20_000, 4), positives.expand(20_000, 4))
    share = sampled.bincount(minlength=4) / 20_000
    expected = logits.masked_fill(positives, -torch.inf).softmax(0)
    assert has_negative.all()
    assert share[0] == 0
    torch.testing.assert_close(share, expected, atol=0.015, rtol=0)


@pytest.mark.parametrize('peak', [0.0, 1e3, 1e5])
def test_equal_images_and_equal_texts_are_never_sampled(peak):
    positives = torch.rand(30, 30) < 0.7
    positives.fill_diagonal_(True)
    positives[3] = True
    sampled, has_negative = sample_negatives(peak * torch.eye(30), positives)
    assert has_negative.tolist() == (~positives.all(1)).tolist()
    assert not positives[torch.arange(30), sampled][has_negative].any()


def test_a_batch_of_one_has_no_negative():
    head = ITMHead(4)
    pairs, labels, weights = head.sample_pairs(
        torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool)
    )
    assert pairs.shape == (3, 2)
    assert labels.tolist() == [1, 0, 0]
    assert weights.tolist() == [1, 0, 0]
    assert head.classification_loss(torch.randn(3, 2), labels, weights)['loss_itm'].isfinite()


def test_the_pairs_are_matches_then_other_images_then_other_texts():
    positives = torch.eye(5, dtype=torch.bool)
    pairs, labels, weights = ITMHead(4).sample_pairs(torch.randn(5, 5), positives)
    rows = list(range(5))
    assert pairs[:5].tolist() == [[row, row] for row in rows]
    assert pairs[5:10, 1].tolist() == rows
    assert pairs[10:, 0].tolist() == rows
    assert (pairs[5:, 0] != pairs[5:, 1]).all()
    assert labels.tolist() == [1] * 5 + [0] * 10
    assert (weights == 1).all()


def test_other_images_are_sampled_by_their_similarity_to_the_text():
    logits = torch.zeros(3, 3)
    logits[2, 0] = 1e3  # image 2 resembles text 0
    pairs, _, _ = ITMHead(4).sample_pairs(logits, torch.eye(3, dtype=torch.bool))
    assert pairs[3].tolist() == [2, 0]
    assert pairs[8].tolist() == [2, 0]


def test_the_loss_leaves_out_negatives_that_could_not_be_sampled():
    head = ITMHead(4)
    logits, labels = torch.randn(6, 2), torch.tensor([1, 1, 0, 0, 0, 0])
    weights = torch.tensor([1.0, 1, 1, 0, 0, 1])
    actual = head.classification_loss(logits, labels, weights)
    kept = weights.bool()
    torch.testing.assert_close(actual['loss_itm'], cross_entropy(logits[kept], labels[kept]))
    accuracy = (logits.argmax(1) == labels)[kept].float().mean()
    torch.testing.assert_close(actual['itm_accuracy'], accuracy)


def test_the_logits_come_from_cls():
    head = ITMHead(4)
    words = torch.randn(2, 3, 4)
    other = words.clone()
    other[:, 1:] = 0
    assert head(words).equal(head(other))


def test_pairs_are_ranked_by_the_logit_of_yes_or_by_its_difference_to_no():
    logits = torch.tensor([[3.0, 2.0], [-1.0, 1.5]])
    assert ITMHead(4).matching_score(logits).tolist() == [2, 1.5]
    assert ITMHead(4, score='difference').matching_score(logits).tolist() == [-1, 2.5]
    with pytest.raises(ValueError, match=r"itm\.score='no', expected 'yes' or 'difference'"):
        ITMHead(4, score='no')


@pytest.mark.parametrize('has_cls', [False, True])
@pytest.mark.parametrize('text', [torch.ones(2, 3, dtype=torch.bool), None], ids=['mask', 'none'])
def test_figures_of_the_position_are_of_real_regions_or_cells(has_cls, text):
    given = []
    position = SimpleNamespace(
        statistics=lambda relation, words, patches: given.append(patches) or {}
    )
    image_encoder = SimpleNamespace(has_cls=has_cls)
    backbone = SimpleNamespace(position=position, image_encoder=image_encoder)
    real = torch.tensor([[True, True, True], [True, False, False]])
    tokens = torch.randn(2, 3, 4)
    pairs = torch.tensor([[0, 0], [1, 1], [1, 0]])
    labels, weights = torch.tensor([1, 1, 0]), torch.ones(3)
    request = FusionRequest(
        Tokens(tokens, real), Tokens(tokens, text), pairs, None, (labels, weights)
    )
    fused = Fused(None, torch.randn(3, 3, 4))
    ITMHead(4).fused_loss(SimpleNamespace(backbone=backbone), None, request, fused)
    first, second = [not has_cls, True, True], [not has_cls, False, False]
    assert given[0].tolist() == [first, second, second]
