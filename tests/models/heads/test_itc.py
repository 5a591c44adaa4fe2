"""The image-text contrastive head against a literal loop."""

import math

import pytest
import torch
from contrastive_step import FILLED_KEYS, directions, is_positive, literal_softmax, make_step

from xmodal.models.heads import ITCHead


@pytest.mark.parametrize('alpha', [0.0, 0.4])
def test_positives_share_the_target_and_the_teacher_softens_it(alpha):
    step, expected = make_step(alpha), 0.0
    for queries, teacher_queries, candidates, _ in directions(step):
        for b in range(4):
            online, teacher = (
                literal_softmax([(x[b] @ candidates[k]).item() / 0.07 for k in FILLED_KEYS])
                for x in (queries, teacher_queries)
            )
            positives = [k for k in FILLED_KEYS if is_positive(b, k)]
            for k in FILLED_KEYS:
                hard_target = 1 / len(positives) if k in positives else 0.0
                target = (1 - alpha) * hard_target + alpha * teacher[k]
                expected -= target * math.log(online[k]) / 4 / 2
    actual = ITCHead(0.07).loss(None, step)
    assert actual['loss_itc'].item() == pytest.approx(expected, rel=1e-4)
    assert actual['temperature'].item() == pytest.approx(0.07)


def test_gradients_are_finite_although_queue_entries_are_empty():
    step, head = make_step(), ITCHead(0.01)
    head.loss(None, step)['loss_itc'].backward()
    for tensor in (step.image.embedding, step.text.embedding, head.temperature.log):
        assert tensor.grad.isfinite().all() and tensor.grad.any()


@pytest.mark.parametrize(('start', 'bounded'), [(5.0, 0.5), (1e-6, 0.001), (0.07, 0.07)])
def test_the_temperature_stays_within_its_bounds(start, bounded):
    head = ITCHead(start)
    assert head.temperature().item() == pytest.approx(bounded)
    torch.testing.assert_close(head.scale(torch.ones(())), torch.tensor(1 / bounded))


def test_under_bfloat16_autocast_the_loss_is_computed_in_float32():
    step = make_step()
    expected = ITCHead().loss(None, step)['loss_itc']
    with torch.autocast('cpu', torch.bfloat16):
        assert ITCHead().loss(None, step)['loss_itc'].equal(expected)
