"""Scores of all pairs with gradients, against the literal loop over captions."""

from functools import partial

import pytest
import torch
from literal_sgraf import dense, literal_logits, nodes_of_pair
from token_sets import REGIONS, WIDTH, padded, token_sets

from xmodal.models.losses import TripletLoss
from xmodal.models.sgraf import similarity
from xmodal.structures import Tokens

LENGTHS = (6, 3, 20, 6, 4)


@pytest.fixture
def tokens():
    """As many captions as images, as the leaves of a graph."""
    images = [tokens.requires_grad_() for tokens in token_sets([REGIONS] * len(LENGTHS))]
    return images, [tokens.requires_grad_() for tokens in token_sets(LENGTHS)]


def gradients(module, tokens, loss):
    leaves = [*tokens[0], *tokens[1], *module.parameters()]
    values = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [x if x is None else x.double() for x in values]


def assert_gradients_close(actual, expected):
    zero = torch.zeros((), dtype=torch.float64)
    for pair in zip(actual, expected, strict=True):
        pair = torch.broadcast_tensors(*(zero if x is None else x for x in pair))
        torch.testing.assert_close(*pair, atol=1e-6, rtol=1e-4)


def hardest_loss(loss_module, scores):
    return loss_module(scores, torch.eye(len(scores), dtype=torch.bool))['loss_triplet']


@pytest.mark.parametrize('cpu_bytes', [1, 2**16, 2**30])
def test_gradients_are_those_of_the_literal_loop(
    build, reasoning, pooling, tokens, cpu_bytes, monkeypatch
):
    monkeypatch.setattr(similarity, 'CPU_TRAINING_BYTES', cpu_bytes)
    module = build(reasoning, pooling)
    weights = torch.randn(len(LENGTHS), len(LENGTHS))
    logits = literal_logits(module, *tokens)
    expected = gradients(module, tokens, (logits * weights).sum())
    actual = module(Tokens(torch.stack(tokens[0])), padded(tokens[1]))
    torch.testing.assert_close(actual.double(), logits, atol=2e-6, rtol=1e-5)
    assert_gradients_close(gradients(module, tokens, (actual * weights).sum()), expected)


@pytest.mark.parametrize('margin', [0.2, 0.01])
def test_pairs_that_the_hardest_negatives_need_give_the_gradients_of_all(
    build, reasoning, pooling, tokens, margin
):
    module, loss_module = build(reasoning, pooling), TripletLoss(margin)
    positives = torch.eye(len(LENGTHS), dtype=torch.bool)
    logits = literal_logits(module, *tokens)
    loss = hardest_loss(loss_module, logits.sigmoid())
    expected = gradients(module, tokens, loss)
    inputs = Tokens(torch.stack(tokens[0])), padded(tokens[1])
    actual = module(*inputs, partial(loss_module.needed_pairs, positives=positives))
    assert actual.isneginf().sum() >= positives.numel() - 3 * len(positives)
    actual_loss = hardest_loss(loss_module, module.to_scores(actual))
    assert actual_loss.item() == pytest.approx(loss.item(), rel=1e-5) and loss > 0
    assert_gradients_close(gradients(module, tokens, actual_loss), expected)


def test_a_batch_norm_by_caption_equals_that_of_the_literal_loop(build, pooling, tokens):
    # The norms and dropout of the poolings stay in evaluation mode, as in the literal loop.
    module, literal_module = build('SAF', pooling), build('SAF', pooling)
    literal_module.load_state_dict(module.state_dict())
    module.reasoning.train()
    logits = literal_logits(literal_module, *tokens, training=True)
    actual = module(Tokens(torch.stack(tokens[0])), padded(tokens[1]))
    torch.testing.assert_close(actual.double(), logits, atol=5e-6, rtol=1e-5)
    norm, expected_norm = module.reasoning.bn, literal_module.reasoning.bn
    torch.testing.assert_close(norm.running_mean, expected_norm.running_mean, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(norm.running_var, expected_norm.running_var, atol=1e-6, rtol=1e-5)
    assert norm.num_batches_tracked == len(LENGTHS)
    weights = torch.randn(len(LENGTHS), len(LENGTHS))
    expected = gradients(literal_module, tokens, (logits * weights).sum())
    assert_gradients_close(gradients(module, tokens, (actual * weights).sum()), expected)


def test_all_pairs_have_gradients_while_they_share_statistics(build, tokens):
    module = build('SAF')
    module.reasoning.train()
    needed = partial(
        TripletLoss().needed_pairs, positives=torch.eye(len(LENGTHS), dtype=torch.bool)
    )
    actual = module(Tokens(torch.stack(tokens[0])), padded(tokens[1]), needed)
    assert actual.isfinite().all()


@torch.no_grad()
def test_a_batch_norm_by_batch_has_the_statistics_of_all_nodes(build, pooling, tokens):
    module, literal_module = build('SAF', pooling, bn_scope='batch'), build('SAF', pooling)
    literal_module.load_state_dict(module.state_dict())
    module.reasoning.train()
    actual = module(Tokens(torch.stack(tokens[0])), padded(tokens[1]))
    relevance = torch.cat(
        [
            dense(
                literal_module.reasoning.relevance,
                nodes_of_pair(literal_module, regions.double(), words.double()),
            )
            for regions in tokens[0]
            for words in tokens[1]
        ]
    )
    moved, norm = module.reasoning.bn, literal_module.reasoning.bn
    for name, value in (('running_mean', relevance.mean()), ('running_var', relevance.var())):
        expected = 0.9 * getattr(norm, name) + 0.1 * value.float()
        torch.testing.assert_close(getattr(moved, name), expected, atol=1e-6, rtol=1e-5)
    # Evaluated with exactly the statistics of the batch, the literal module gives equal logits.
    norm.running_mean.fill_(relevance.mean())
    norm.running_var.fill_(relevance.var(correction=0))
    expected = literal_logits(literal_module, *tokens)
    torch.testing.assert_close(actual.double(), expected, atol=5e-6, rtol=1e-5)


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
    # With several processes a parameter without a gradient is an error.
    module = build(reasoning, pooling).train()
    loss_module, positives = TripletLoss(), torch.eye(4, dtype=torch.bool)
    images, texts = Tokens(torch.randn(4, REGIONS, WIDTH)), padded(token_sets([5, 3, 5, 7]))
    logits = module(images, texts, partial(loss_module.needed_pairs, positives=positives))
    hardest_loss(loss_module, module.to_scores(logits)).backward()
    assert all(value.grad is not None for value in module.parameters())


def test_under_bfloat16_autocast_scores_are_near_and_gradients_finite(build, reasoning, tokens):
    module = build(reasoning)
    expected = literal_logits(module, *tokens)
    with torch.autocast('cpu', torch.bfloat16):
        actual = module(Tokens(torch.stack(tokens[0])), padded(tokens[1]))
    assert actual.dtype == torch.float32
    assert (actual - expected).square().mean().sqrt() < 0.1 * expected.std()
    for gradient in gradients(module, tokens, actual.sum()):
        assert gradient is None or gradient.isfinite().all()


def test_self_attention_refuses_padded_regions_in_training(build):
    module = build('SAF', 'self_attention').train()
    with pytest.raises(ValueError, match='up to 5 with padding'):
        module(padded(token_sets([REGIONS, 2])), padded(token_sets([3, 4])))


def test_a_batch_of_one_image_has_no_batch_norm_to_train(build, pooling):
    module = build('SAF', pooling)
    pair = Tokens(torch.randn(1, REGIONS, WIDTH)), padded(token_sets([3]))
    assert module(*pair).isfinite().all()
    module.train()
    if pooling == 'self_attention':
        with pytest.raises(ValueError, match=r'one image.*drop_last=True.*larger .*global_batch'):
            module(*pair)
    else:
        assert module(*pair).isfinite().all()
