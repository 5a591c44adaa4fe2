"""Masked language modelling."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import cross_entropy

from xmodal.models.heads import MLMHead
from xmodal.registry import MODELS

PAD, CLS, SEP, MASK = 0, 2, 3, 4
SPECIAL = torch.tensor([0, 1, 2, 3, 4])
PREPROCESSOR = SimpleNamespace(special_ids=SPECIAL, mask_id=MASK)


def make_head(mask_probability=0.15, vocab_size=50, focus=()):
    return MLMHead(8, vocab_size, mask_probability, focus=focus)


def long_text(length=100_000):
    ids = torch.randint(5, 50, (1, length))
    ids[0, 0], ids[0, -1] = CLS, SEP
    ids[0, -100:-1] = PAD
    return ids


def test_15_percent_of_the_words_are_targets():
    ids = long_text()
    targets = make_head().mask_words(ids, PREPROCESSOR).targets
    assert targets.float().mean().item() == pytest.approx(0.15, abs=0.005)


def test_targets_become_mask_or_a_random_word_or_stay():
    ids = long_text()
    masked, targets = make_head().mask_words(ids, PREPROCESSOR)
    before, after = ids[targets], masked[targets]
    mask_share = (after == MASK).float().mean().item()
    kept_share = (after == before).float().mean().item()
    assert mask_share == pytest.approx(0.8 + 0.1 / 50, abs=0.01)
    assert kept_share == pytest.approx(0.1 + 0.1 / 50, abs=0.01)
    random_words = after[(after != MASK) & (after != before)]
    assert random_words.unique().numel() > 40


def test_words_that_are_no_targets_stay():
    ids = long_text(1000)
    masked, targets = make_head().mask_words(ids, PREPROCESSOR)
    assert masked[~targets].equal(ids[~targets])


def test_one_of_the_words_in_focus_is_a_target_of_each_text_that_has_some():
    head = make_head(mask_probability=0.0, focus=['word2', 'word3'])
    head.focus_ids = torch.tensor([7, 8])
    ids = torch.tensor([[CLS, 7, 20, 8, SEP], [CLS, 20, 21, 22, SEP], [CLS, 8, 20, SEP, PAD]])
    count = torch.zeros(ids.shape)
    for _ in range(400):
        targets = head.mask_words(ids, PREPROCESSOR).targets
        assert targets.sum(1).tolist() == [1, 0, 1]
        count += targets
    assert count[2, 1] == 400
    assert count[0, 1] + count[0, 3] == 400
    assert 150 < count[0, 1] < 250


def test_words_in_focus_are_looked_up_in_the_vocabulary(config):
    settings = config(heads=('itc', 'mlm'))
    settings['heads']['mlm'] = dict(type='MLMHead', focus=['word0', 'word3'])
    assert MODELS.build(settings).heads['mlm'].focus_ids.tolist() == [5, 8]
    settings['heads']['mlm'] = dict(type='MLMHead', focus=['left'])
    with pytest.raises(ValueError, match=r"heads.mlm.focus has 'left', which the tokenizer reads"):
        MODELS.build(settings)


def test_special_tokens_and_padding_are_never_targets():
    ids = long_text(1000)
    masked, targets = make_head(mask_probability=1.0).mask_words(ids, PREPROCESSOR)
    special = torch.isin(ids, SPECIAL)
    assert targets.equal(~special)
    assert masked[special].equal(ids[special])


def test_the_decoder_is_tied_to_the_word_vectors():
    head = make_head()
    words, table = torch.randn(3, 8), torch.randn(50, 8, requires_grad=True)
    logits = head(words, table)
    masked = head.norm(torch.nn.functional.gelu(head.transform(words)))
    torch.testing.assert_close(logits, masked @ table.T + head.bias)
    logits.sum().backward()
    assert table.grad.any()


@pytest.mark.parametrize('alpha', [0.0, 0.4])
def test_the_loss_mixes_words_and_the_teachers_softmax(alpha):
    logits, teacher_logits = torch.randn(5, 50), torch.randn(5, 50)
    targets = torch.randint(50, (5,))
    log_probabilities = logits.log_softmax(1)
    soft = -(teacher_logits.softmax(1) * log_probabilities).sum(1).mean()
    hard = -log_probabilities[torch.arange(5), targets].mean()
    actual = make_head().word_loss(logits, targets, teacher_logits, alpha)['loss_mlm']
    torch.testing.assert_close(actual, (1 - alpha) * hard + alpha * soft)


def test_without_a_teacher_the_loss_is_cross_entropy():
    logits, targets = torch.randn(5, 50), torch.randint(50, (5,))
    actual = make_head().word_loss(logits, targets, None, 0.0)['loss_mlm']
    torch.testing.assert_close(actual, cross_entropy(logits, targets))


def test_without_a_target_the_loss_and_its_gradient_are_zero():
    head, table = make_head(), torch.randn(50, 8, requires_grad=True)
    logits = head(torch.zeros(0, 8), table)
    no_targets = torch.zeros(0, dtype=torch.int64)
    loss = head.word_loss(logits, no_targets, logits.detach(), 0.4)['loss_mlm']
    loss.backward()
    assert loss == 0
    assert (table.grad == 0).all()
    assert all((p.grad == 0).all() for p in head.parameters())


def test_word_vectors_of_another_width_than_the_fused_words_are_an_error(config):
    narrow = config(heads=['itc', 'mlm'])
    narrow['backbone']['text_encoder']['config']['hidden_size'] = 16
    narrow['backbone']['text_adapter'] = dict(type='TokenAdapter')
    with pytest.raises(ValueError, match=r'fused words, 32 wide .*word vectors .*, 16 wide'):
        MODELS.build(narrow)
