"""The anchor head against a literal loop."""

import math
from types import SimpleNamespace

import pytest
import torch
from contrastive_step import FILLED_KEYS, directions, is_positive, make_step

from xmodal.models.heads import AnchorHead
from xmodal.structures import EMPTY, Keys


def model(has_cls):
    return SimpleNamespace(backbone=SimpleNamespace(image_encoder=SimpleNamespace(has_cls=has_cls)))


@pytest.mark.parametrize('has_cls', [True, False], ids=['patches', 'regions'])
def test_the_anchor_loss_is_equations_1_and_2(has_cls):
    step, hinges = make_step(), []
    for queries, _, candidates, partners in directions(step):
        for b in range(4):
            negatives = [k for k in FILLED_KEYS if not is_positive(b, k)]
            total = math.fsum(math.exp(3 * (queries[b] @ candidates[k]).item()) for k in negatives)
            positive = (queries[b] @ partners[b]).item()
            hinges.append(-min(0.0, positive - 0.1 - math.log(total) / 3))
    token_term, words = 0.0, step.text.tokens
    for b in range(4):
        cosines = [
            torch.cosine_similarity(patch, word, dim=0).item()
            for patch in step.image.tokens.embeddings[b, has_cls:]
            for word in words.embeddings[b, 1 : words.attention_mask[b].sum()]
        ]
        token_term += math.log(math.fsum(math.exp(10 * c) for c in cosines)) / 10 / 4
    actual = AnchorHead(scale=3.0, token_scale=10.0, margin=0.1).loss(model(has_cls), step)
    expected = (sum(hinges) / 4 - token_term) / 2
    assert actual['loss_ace'].item() == pytest.approx(expected, rel=1e-4)
    assert actual['token_log_sum_exp'].item() == pytest.approx(token_term, rel=1e-4)
    assert actual['hinge_open'].item() == sum(h > 0 for h in hinges) / 8


def test_gradients_are_finite_with_an_empty_queue_and_one_image():
    step, ids = make_step(0.0), torch.ones(4, dtype=torch.int64)
    empty_ids = ids.new_full((5,), EMPTY)
    empty_queue = Keys(torch.zeros(5, 8), torch.zeros(5, 8), empty_ids, empty_ids)
    batch_keys = step.batch_keys._replace(image_ids=ids)
    step = step._replace(
        batch=step.batch._replace(image_ids=ids),
        batch_keys=batch_keys,
        keys=batch_keys.join(empty_queue),
    )
    actual = AnchorHead().loss(model(True), step)
    actual['loss_ace'].backward()
    assert actual['loss_ace'].isfinite()
    assert actual['hinge_open'] == 0
    for tensor in (step.image.embedding, step.text.embedding):
        assert tensor.grad is None or tensor.grad.isfinite().all()


def test_its_logits_are_similarities_times_lambda():
    similarity = torch.randn(3, 4)
    torch.testing.assert_close(AnchorHead(scale=3.0).scale(similarity), 3 * similarity)
