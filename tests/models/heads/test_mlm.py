"""Masked language modelling."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from xmodal.models.heads import MLMHead

PAD, CLS, SEP, MASK = 0, 2, 3, 4
SPECIAL = torch.tensor([0, 1, 2, 3, 4])


def make_head(mask_probability=0.15, vocab_size=50):
    return MLMHead(embed_dims=8, vocab_size=vocab_size, mask_probability=mask_probability)


def long_text(length=100_000):
    ids = torch.randint(5, 50, (1, length))
    ids[0, 0], ids[0, -1] = CLS, SEP
    ids[0, -100:-1] = PAD
    return ids


def test_fifteen_in_a_hundred_words_are_chosen():
    ids = long_text()
    chosen = make_head().mask(ids, SPECIAL, MASK).chosen
    assert chosen.float().mean().item() == pytest.approx(0.15, abs=0.005)


def test_chosen_words_become_mask_or_random_or_stay():
    ids = long_text()
    hidden, chosen = make_head().mask(ids, SPECIAL, MASK)
    before, after = ids[chosen], hidden[chosen]
    masked = (after == MASK).float().mean().item()
    kept = (after == before).float().mean().item()
    assert masked == pytest.approx(0.8 + 0.1 / 50, abs=0.01)
    assert kept == pytest.approx(0.1 + 0.1 / 50, abs=0.01)
    random_words = after[(after != MASK) & (after != before)]
    assert random_words.unique().numel() > 40


def test_words_that_are_not_chosen_stay():
    ids = long_text(1000)
    hidden, chosen = make_head().mask(ids, SPECIAL, MASK)
    assert hidden[~chosen].equal(ids[~chosen])


def test_special_tokens_and_padding_are_never_chosen():
    ids = long_text(1000)
    hidden, chosen = make_head(mask_probability=1.0).mask(ids, SPECIAL, MASK)
    special = torch.isin(ids, SPECIAL)
    assert chosen.equal(~special)
    assert hidden[special].equal(ids[special])


def test_the_decoder_is_tied_to_the_word_vectors():
    head = make_head()
    words, table = torch.randn(3, 8), torch.randn(50, 8, requires_grad=True)
    logits = head(words, table)
    hidden = head.norm(torch.nn.functional.gelu(head.transform(words)))
    torch.testing.assert_close(logits, hidden @ table.T + head.bias)
    logits.sum().backward()
    assert table.grad.any()


@pytest.mark.parametrize('alpha', [0.0, 0.4])
def test_the_loss_mixes_words_and_the_teachers_softmax(alpha):
    logits, teacher = torch.randn(5, 50), torch.randn(5, 50)
    targets = torch.randint(50, (5,))
    log_probabilities = logits.log_softmax(1)
    soft = -(teacher.softmax(1) * log_probabilities).sum(1).mean()
    hard = -log_probabilities[torch.arange(5), targets].mean()
    found = make_head().loss(logits, targets, teacher, alpha)['loss_mlm']
    torch.testing.assert_close(found, (1 - alpha) * hard + alpha * soft)


def test_without_a_teacher_the_loss_is_cross_entropy():
    logits, targets = torch.randn(5, 50), torch.randint(50, (5,))
    found = make_head().loss(logits, targets, None, 0.0)['loss_mlm']
    torch.testing.assert_close(found, cross_entropy(logits, targets))


def test_where_no_word_was_chosen_the_loss_is_zero_and_so_is_its_gradient():
    head, table = make_head(), torch.randn(50, 8, requires_grad=True)
    logits = head(torch.zeros(0, 8), table)
    loss = head.loss(logits, torch.zeros(0, dtype=torch.int64), logits.detach(), 0.4)['loss_mlm']
    loss.backward()
    assert loss == 0
    assert (table.grad == 0).all()
    assert all((p.grad == 0).all() for p in head.parameters())
