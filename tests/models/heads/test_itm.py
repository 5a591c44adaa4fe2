"""Image-text matching and its hard negatives."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from xmodal.models.heads import ITMHead
from xmodal.models.heads.itm import sample_negatives


def test_negatives_follow_the_softmax_of_what_is_allowed():
    logits = torch.tensor([2.0, 0.0, 1.0, -1.0])
    forbidden = torch.tensor([True, False, False, False])
    drawn, possible = sample_negatives(logits.expand(20_000, 4), forbidden.expand(20_000, 4))
    share = drawn.bincount(minlength=4) / 20_000
    expected = logits.masked_fill(forbidden, -torch.inf).softmax(0)
    assert possible.all()
    assert share[0] == 0
    torch.testing.assert_close(share, expected, atol=0.015, rtol=0)


@pytest.mark.parametrize('peak', [0.0, 1e3, 1e5])
def test_equal_images_and_equal_texts_are_never_drawn(peak):
    same = torch.rand(30, 30) < 0.7
    same.fill_diagonal_(True)
    same[3] = True
    drawn, possible = sample_negatives(peak * torch.eye(30), same)
    assert possible.tolist() == (~same.all(1)).tolist()
    assert not same[torch.arange(30), drawn][possible].any()


def test_a_batch_of_one_has_no_negative():
    head = ITMHead(4)
    pairs, labels, weights = head.pairs(torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool))
    assert pairs.shape == (3, 2)
    assert labels.tolist() == [1, 0, 0]
    assert weights.tolist() == [1, 0, 0]
    assert head.loss(torch.randn(3, 2), labels, weights)['loss_itm'].isfinite()


def test_a_batch_is_matches_then_other_images_then_other_texts():
    same = torch.eye(5, dtype=torch.bool)
    pairs, labels, weights = ITMHead(4).pairs(torch.randn(5, 5), same)
    own = list(range(5))
    assert pairs[:5].tolist() == [[i, i] for i in own]
    assert pairs[5:10, 1].tolist() == own
    assert pairs[10:, 0].tolist() == own
    assert (pairs[5:, 0] != pairs[5:, 1]).all()
    assert labels.tolist() == [1] * 5 + [0] * 10
    assert (weights == 1).all()


def test_other_images_are_drawn_by_their_similarity_to_the_text():
    logits = torch.zeros(3, 3)
    logits[2, 0] = 1e3  # image 2 resembles text 0
    pairs, _, _ = ITMHead(4).pairs(logits, torch.eye(3, dtype=torch.bool))
    assert pairs[3].tolist() == [2, 0]
    assert pairs[8].tolist() == [2, 0]


def test_the_loss_leaves_out_what_could_not_be_drawn():
    head = ITMHead(4)
    logits, labels = torch.randn(6, 2), torch.tensor([1, 1, 0, 0, 0, 0])
    weights = torch.tensor([1.0, 1, 1, 0, 0, 1])
    found = head.loss(logits, labels, weights)
    kept = weights.bool()
    torch.testing.assert_close(found['loss_itm'], cross_entropy(logits[kept], labels[kept]))
    accuracy = (logits.argmax(1) == labels)[kept].float().mean()
    torch.testing.assert_close(found['itm_accuracy'], accuracy)


def test_the_judgement_is_made_from_cls():
    head = ITMHead(4)
    words = torch.randn(2, 3, 4)
    other = words.clone()
    other[:, 1:] = 0
    assert head(words).equal(head(other))
