"""The losses over all pairs of a batch, against literal loops."""

import math

import pytest
import torch

from xmodal.models.heads import InfoNCELoss, TripletLoss

B = 5


@pytest.fixture
def scores():
    return torch.rand(B, B, dtype=torch.float64).requires_grad_()


@pytest.fixture
def same():
    """Captions 1 and 3 are of one image, which is in the batch twice."""
    found = torch.eye(B, dtype=torch.bool)
    found[1, 3] = found[3, 1] = True
    return found


def literal_hinges(scores, same, margin):
    """The hinges of each caption with the negatives of its image, and the other way round."""
    s = scores.tolist()
    for b in range(B):
        yield [max(0.0, margin + s[b][t] - s[b][b]) for t in range(B) if not same[b, t]]
    for b in range(B):
        yield [max(0.0, margin + s[i][b] - s[b][b]) for i in range(B) if not same[i, b]]


@pytest.mark.parametrize('margin', [0.05, 0.2, 2.0])
@pytest.mark.parametrize(
    ('negatives', 'reduce'),
    [('hardest', max), ('sum', sum), ('mean', lambda hinges: sum(hinges) / len(hinges))],
)
def test_the_loss_is_the_hinge_over_its_negatives_summed_over_the_batch(
    scores, same, margin, negatives, reduce
):
    hinges = [reduce(own) for own in literal_hinges(scores, same, margin)]
    found = TripletLoss(margin, negatives).loss(scores, same)
    assert found['loss_triplet'].item() == pytest.approx(sum(hinges))
    assert found['hinge_open'].item() == pytest.approx(sum(h > 0 for h in hinges) / (2 * B))


@pytest.mark.parametrize('margin', [0.05, 2.0])
def test_only_needed_pairs_have_gradients(scores, same, margin):
    head = TripletLoss(margin)
    needed = head.needed(scores.detach(), same)
    (gradient,) = torch.autograd.grad(head.loss(scores, same)['loss_triplet'], scores)
    assert not gradient[~needed].any() and gradient[needed].any()
    # With the others at −inf, as a similarity leaves what it was not asked for, nothing changes.
    alone = scores.masked_fill(~needed, -math.inf)
    loss = head.loss(alone, same)['loss_triplet']
    assert loss.item() == pytest.approx(head.loss(scores, same)['loss_triplet'].item())
    assert torch.autograd.grad(loss, scores)[0].equal(gradient)


@pytest.mark.parametrize('negatives', ['sum', 'mean'])
def test_all_negatives_need_all_pairs(scores, same, negatives):
    assert TripletLoss(negatives=negatives).needed(scores, same) is None
    assert InfoNCELoss().needed(scores, same) is None


@pytest.mark.parametrize('negatives', ['hardest', 'mean', 'sum'])
def test_pairs_that_score_alike_leave_the_loss_on_its_plateau(negatives):
    head = TripletLoss(0.2, negatives)
    loss = head.loss(torch.full((128, 128), 0.3), torch.eye(128, dtype=torch.bool))
    assert loss['loss_triplet'].item() == pytest.approx(head.plateau(128), rel=1e-5)
    assert negatives == 'sum' or head.plateau(128) == pytest.approx(51.2)


@pytest.mark.parametrize('negatives', ['hardest', 'mean', 'sum'])
def test_a_batch_of_one_image_has_no_loss_and_finite_gradients(scores, negatives):
    same = torch.ones(B, B, dtype=torch.bool)
    loss = TripletLoss(negatives=negatives).loss(scores, same)['loss_triplet']
    loss.backward()
    assert loss == 0 and not scores.grad.any()


def test_unknown_negatives_are_an_error():
    with pytest.raises(ValueError, match="negatives='easiest', expected one of .*'hardest'"):
        TripletLoss(negatives='easiest')


def test_info_nce_shares_the_target_between_captions_of_an_image(scores, same):
    logits, losses = 3 * scores, []
    for table in (logits, logits.T):
        for b in range(B):
            row = [x.item() / 0.1 for x in table[b]]
            total = math.fsum(math.exp(x) for x in row)
            mates = [t for t in range(B) if same[b, t]]
            logs = [math.log(math.exp(row[t]) / total) for t in mates]
            losses.append(-math.fsum(logs) / len(mates))
    found = InfoNCELoss(0.1).loss(logits, same)
    assert found['loss_info_nce'].item() == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert found['temperature'].item() == pytest.approx(0.1)


def test_the_temperature_of_info_nce_is_learned_and_bounded(scores, same):
    head = InfoNCELoss(0.1)
    head.loss(scores, same)['loss_info_nce'].backward()
    assert head.log_temperature.grad.isfinite() and head.log_temperature.grad != 0
    assert InfoNCELoss(5.0).loss(scores, same)['temperature'].item() == pytest.approx(0.5)
