"""Scores of all pairs with gradients, against the literal loop over captions."""

from functools import partial

import pytest
import torch
from literal import dense, literal_logits, nodes_of_pair
from token_sets import REGIONS, WIDTH, padded, token_sets

from xmodal.models.heads import TripletLoss
from xmodal.models.sgraf import fusion
from xmodal.structures import Tokens

LENGTHS = (6, 3, 20, 6, 4)


@pytest.fixture
def tokens():
    """As many captions as images, as the leaves of a graph."""
    images = [own.requires_grad_() for own in token_sets([REGIONS] * len(LENGTHS))]
    return images, [own.requires_grad_() for own in token_sets(LENGTHS)]


def gradients(module, tokens, loss):
    leaves = [*tokens[0], *tokens[1], *module.parameters()]
    found = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [x if x is None else x.double() for x in found]


def assert_gradients_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        zero = torch.zeros((), dtype=torch.float64)
        one, other = (zero if x is None else x for x in (one, other))
        torch.testing.assert_close(*torch.broadcast_tensors(one, other), atol=1e-6, rtol=1e-4)


def hardest_loss(head, scores):
    return head.loss(scores, torch.eye(len(scores), dtype=torch.bool))['loss_triplet']


@pytest.mark.parametrize('cpu_bytes', [1, 2**16, 2**30])
def test_gradients_are_those_of_the_literal_loop(
    build, reasoning, pooling, tokens, cpu_bytes, monkeypatch
):
    monkeypatch.setattr(fusion, 'CPU_TRAINING_BYTES', cpu_bytes)
    module = build(reasoning, pooling)
    weights = torch.randn(len(LENGTHS), len(LENGTHS))
    logits = literal_logits(module, *tokens)
    expected = gradients(module, tokens, (logits * weights).sum())
    found = module(Tokens(torch.stack(tokens[0])), padded(tokens[1]))
    torch.testing.assert_close(found.double(), logits, atol=2e-6, rtol=1e-5)
    assert_gradients_close(gradients(module, tokens, (found * weights).sum()), expected)


@pytest.mark.parametrize('margin', [0.2, 0.01])
def test_pairs_that_the_hardest_negatives_need_give_the_gradients_of_all(
    build, reasoning, pooling, tokens, margin
):
    module, head = build(reasoning, pooling), TripletLoss(margin)
    same = torch.eye(len(LENGTHS), dtype=torch.bool)
    logits = literal_logits(module, *tokens)
    loss = hardest_loss(head, logits.sigmoid())
    expected = gradients(module, tokens, loss)
    inputs = Tokens(torch.stack(tokens[0])), padded(tokens[1])
    found = module(*inputs, partial(head.needed, same=same))
    assert found.isneginf().sum() >= same.numel() - 3 * len(same)
    found_loss = hardest_loss(head, module.to_scores(found))
    assert found_loss.item() == pytest.approx(loss.item(), rel=1e-5) and loss > 0
    assert_gradients_close(gradients(module, tokens, found_loss), expected)


def test_a_batch_norm_by_caption_is_that_of_the_literal_loop(build, pooling, tokens):
    # The poolings' own norms and dropout are left out: the literal ones know evaluation only.
    module, teacher = build('SAF', pooling), build('SAF', pooling)
    teacher.load_state_dict(module.state_dict())
    module.reasoning.train()
    logits = literal_logits(teacher, *tokens, training=True)
    found = module(Tokens(torch.stack(tokens[0])), padded(tokens[1]))
    torch.testing.assert_close(found.double(), logits, atol=5e-6, rtol=1e-5)
    norm, other = module.reasoning.bn, teacher.reasoning.bn
    torch.testing.assert_close(norm.running_mean, other.running_mean, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(norm.running_var, other.running_var, atol=1e-6, rtol=1e-5)
    assert norm.num_batches_tracked == len(LENGTHS)
    weights = torch.randn(len(LENGTHS), len(LENGTHS))
    expected = gradients(teacher, tokens, (logits * weights).sum())
    assert_gradients_close(gradients(module, tokens, (found * weights).sum()), expected)


def test_all_pairs_have_gradients_while_they_share_statistics(build, tokens):
    module = build('SAF')
    module.reasoning.train()
    needed = partial(TripletLoss().needed, same=torch.eye(len(LENGTHS), dtype=torch.bool))
    found = module(Tokens(torch.stack(tokens[0])), padded(tokens[1]), needed)
    assert found.isfinite().all()


@torch.no_grad()
def test_a_batch_norm_by_batch_has_the_statistics_of_all_nodes(build, pooling, tokens):
    module, teacher = build('SAF', pooling, bn_scope='batch'), build('SAF', pooling)
    teacher.load_state_dict(module.state_dict())
    module.reasoning.train()
    found = module(Tokens(torch.stack(tokens[0])), padded(tokens[1]))
    relevance = torch.cat(
        [
            dense(
                teacher.reasoning.relevance,
                nodes_of_pair(teacher, regions.double(), words.double()),
            )
            for regions in tokens[0]
            for words in tokens[1]
        ]
    )
    moved, norm = module.reasoning.bn, teacher.reasoning.bn
    for name, value in (('running_mean', relevance.mean()), ('running_var', relevance.var())):
        expected = 0.9 * getattr(norm, name) + 0.1 * value.float()
        torch.testing.assert_close(getattr(moved, name), expected, atol=1e-6, rtol=1e-5)
    # Evaluated with exactly the batch's statistics, the teacher gives the same.
    norm.running_mean.fill_(relevance.mean())
    norm.running_var.fill_(relevance.var(correction=0))
    expected = literal_logits(teacher, *tokens)
    torch.testing.assert_close(found.double(), expected, atol=5e-6, rtol=1e-5)


@pytest.mark.parametrize('training', [False, True])
def test_zero_rows_and_padding_give_finite_gradients(build, reasoning, pooling, training):
    module = build(reasoning, pooling).train(training)
    images, words = torch.randn(4, REGIONS, WIDTH), torch.randn(4, 6, WIDTH)
    images[0], images[1, 2], words[0, 1], words[1] = 0, 0, 0, 0
    mask = torch.arange(6) < torch.tensor([[6], [3], [4], [4]])
    images.requires_grad_()
    words.requires_grad_()
    logits = module(Tokens(images), Tokens(words, mask))
    logits.square().sum().backward()
    for tensor in (images, words, *module.parameters()):
        assert tensor.grad.isfinite().all()
    assert not words.grad[~mask].any()


def test_every_parameter_gets_a_gradient(build, reasoning, pooling):
    # With several processes one without would be an error.
    module = build(reasoning, pooling).train()
    head, same = TripletLoss(), torch.eye(4, dtype=torch.bool)
    images, texts = Tokens(torch.randn(4, REGIONS, WIDTH)), padded(token_sets([5, 3, 5, 7]))
    logits = module(images, texts, partial(head.needed, same=same))
    hardest_loss(head, module.to_scores(logits)).backward()
    assert all(value.grad is not None for value in module.parameters())


def test_under_bfloat16_autocast_scores_are_near_and_gradients_finite(build, reasoning, tokens):
    module = build(reasoning)
    expected = literal_logits(module, *tokens)
    with torch.autocast('cpu', torch.bfloat16):
        found = module(Tokens(torch.stack(tokens[0])), padded(tokens[1]))
    assert found.dtype == torch.float32
    assert (found - expected).std() < 0.1 * expected.std()
    for gradient in gradients(module, tokens, found.sum()):
        assert gradient is None or gradient.isfinite().all()


def test_self_attention_refuses_padded_regions_in_training(build):
    module = build('SAF', 'self_attention').train()
    with pytest.raises(ValueError, match='up to 5 with padding'):
        module(padded(token_sets([REGIONS, 2])), padded(token_sets([3, 4])))
