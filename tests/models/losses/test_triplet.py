"""The losses over all pairs of a batch, against literal loops."""

import math

import pytest
import torch

from xmodal.models.losses import InfoNCELoss, TripletLoss

B = 5


@pytest.fixture
def scores():
    return torch.rand(B, B, dtype=torch.float64).requires_grad_()


@pytest.fixture
def positives():
    """Captions 1 and 3 are of one image, which is in the batch twice."""
    mask = torch.eye(B, dtype=torch.bool)
    mask[1, 3] = mask[3, 1] = True
    return mask


def literal_hinges(scores, positives, margin):
    """The hinges of each caption with the negatives of its image, and the other way round."""
    s = scores.tolist()
    for b in range(B):
        yield [max(0.0, margin + s[b][t] - s[b][b]) for t in range(B) if not positives[b, t]]
    for b in range(B):
        yield [max(0.0, margin + s[i][b] - s[b][b]) for i in range(B) if not positives[i, b]]


@pytest.mark.parametrize('margin', [0.05, 0.2, 2.0])
@pytest.mark.parametrize(
    ('negatives', 'reduce'),
    [('hardest', max), ('sum', sum), ('mean', lambda hinges: sum(hinges) / len(hinges))],
)
def test_the_loss_is_the_hinge_over_its_negatives_summed_over_the_batch(
    scores, positives, margin, negatives, reduce
):
    hinges = [reduce(of_query) for of_query in literal_hinges(scores, positives, margin)]
    actual = TripletLoss(margin, negatives)(scores, positives)
    assert actual['loss_triplet'].item() == pytest.approx(sum(hinges))
    assert actual['hinge_open'].item() == pytest.approx(sum(h > 0 for h in hinges) / (2 * B))


@pytest.mark.parametrize('margin', [0.05, 2.0])
def test_only_needed_pairs_have_gradients(scores, positives, margin):
    loss_module = TripletLoss(margin)
    needed = loss_module.needed_pairs(scores.detach(), positives)
    expected = loss_module(scores, positives)['loss_triplet']
    (gradient,) = torch.autograd.grad(expected, scores)
    assert not gradient[~needed].any() and gradient[needed].any()
    # A similarity leaves −inf where a pair was not asked for: nothing changes.
    needed_scores = scores.masked_fill(~needed, -math.inf)
    loss = loss_module(needed_scores, positives)['loss_triplet']
    assert loss.item() == pytest.approx(expected.item())
    assert torch.autograd.grad(loss, scores)[0].equal(gradient)


@pytest.mark.parametrize('negatives', ['sum', 'mean'])
def test_all_negatives_need_all_pairs(scores, positives, negatives):
    assert TripletLoss(negatives=negatives).needed_pairs(scores, positives) is None
    assert InfoNCELoss().needed_pairs(scores, positives) is None


@pytest.mark.parametrize('negatives', ['hardest', 'mean', 'sum'])
def test_pairs_of_equal_scores_leave_the_loss_on_its_plateau(negatives):
    loss_module = TripletLoss(0.2, negatives)
    values = loss_module(torch.full((128, 128), 0.3), torch.eye(128, dtype=torch.bool))
    plateau = loss_module.plateau(128)
    assert values['loss_triplet'].item() == pytest.approx(plateau, rel=1e-5)
    assert negatives == 'sum' or plateau == pytest.approx(51.2)


@pytest.mark.parametrize('negatives', ['hardest', 'mean', 'sum'])
def test_a_batch_of_one_image_has_no_loss_and_finite_gradients(scores, negatives):
    positives = torch.ones(B, B, dtype=torch.bool)
    loss = TripletLoss(negatives=negatives)(scores, positives)['loss_triplet']
    loss.backward()
    assert loss == 0 and not scores.grad.any()


def test_unknown_negatives_are_an_error():
    with pytest.raises(ValueError, match="negatives='easiest', expected one of .*'hardest'"):
        TripletLoss(negatives='easiest')


def test_info_nce_shares_the_target_between_captions_of_an_image(scores, positives):
    logits, losses = 3 * scores, []
    for table in (logits, logits.T):
        for b in range(B):
            row = [x.item() / 0.1 for x in table[b]]
            total = math.fsum(math.exp(x) for x in row)
            columns = [t for t in range(B) if positives[b, t]]
            logs = [math.log(math.exp(row[t]) / total) for t in columns]
            losses.append(-math.fsum(logs) / len(columns))
    actual = InfoNCELoss(0.1)(logits, positives)
    assert actual['loss_info_nce'].item() == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert actual['temperature'].item() == pytest.approx(0.1)


def test_the_temperature_of_info_nce_is_learned_and_bounded(scores, positives):
    loss_module = InfoNCELoss(0.1)
    loss_module(scores, positives)['loss_info_nce'].backward()
    gradient = loss_module.temperature.log.grad
    assert gradient.isfinite() and gradient != 0
    bounded = InfoNCELoss(5.0)(scores, positives)['temperature']
    assert bounded.item() == pytest.approx(0.5)
