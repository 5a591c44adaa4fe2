"""Poolings of token sets."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import softmax

from xmodal.errors import ConfigError
from xmodal.models.layers import GPOPooling, build_pooling, pool
from xmodal.registry import MODELS

WIDTH = 6
POOLINGS = ['MeanPooling', 'MaxPooling', 'MeanMaxPooling', 'GPOPooling']


@pytest.fixture
def sets():
    """Sets of 1, 7 and 4 tokens, not always the first ones."""
    mask = torch.tensor([[0, 1, 0, 0, 0, 0, 0], [1] * 7, [1, 0, 1, 1, 0, 1, 0]], dtype=torch.bool)
    return torch.randn(3, 7, WIDTH), mask


def build(name):
    return MODELS.build(dict(type=name, embed_dims=WIDTH))


def literal_gpo(pooling, tokens):
    """One set (L, D): the k-th largest of each dimension times θ_k."""
    length, dims = len(tokens), pooling.position_dims
    ranks = torch.zeros(length, dims)
    for rank in range(length):
        for i in range(0, dims, 2):
            ranks[rank, i] = math.sin(rank / 10000 ** (i / dims))
            ranks[rank, i + 1] = math.cos(rank / 10000 ** (i / dims))
    states = pooling.gru(ranks[None])[0][0]
    half = states.shape[1] // 2
    scores = pooling.linear((states[:, :half] + states[:, half:]) / 2)[:, 0]
    weights = softmax(scores / 0.1, 0)
    ranked = torch.stack([tokens[:, d].sort(descending=True).values for d in range(WIDTH)], 1)
    return sum(weights[k] * ranked[k] for k in range(length))


@torch.no_grad()
@pytest.mark.parametrize(
    ('name', 'literal'),
    [
        ('MeanPooling', lambda pooling, x: sum(x) / len(x)),
        ('MaxPooling', lambda pooling, x: torch.stack([column.max() for column in x.T])),
        (
            'MeanMaxPooling',
            lambda pooling, x: torch.stack([*(sum(x) / len(x)), *(column.max() for column in x.T)]),
        ),
        ('GPOPooling', literal_gpo),
    ],
)
def test_each_set_is_pooled_over_its_real_tokens(sets, name, literal):
    pooling = build(name)
    expected = torch.stack([literal(pooling, x[real]) for x, real in zip(*sets, strict=True)])
    torch.testing.assert_close(pooling(*sets), expected, atol=1e-5, rtol=1e-5)
    assert pooling.out_dims == expected.shape[1]
    full_set = sets[0][1:2]
    torch.testing.assert_close(pooling(full_set)[0], expected[1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('name', POOLINGS)
def test_the_content_of_padding_changes_nothing(sets, name):
    pooling, (embeddings, mask) = build(name), sets
    results = []
    for filling in (0.0, 1e4, -1e4, math.nan):
        tokens = embeddings.masked_fill(~mask[..., None], filling).requires_grad_()
        pooled = pooling(tokens, mask)
        pooled.square().sum().backward()
        assert (tokens.grad[~mask] == 0).all()
        results.append((pooled.detach(), tokens.grad))
    for pooled, gradient in results[1:]:
        assert pooled.equal(results[0][0]) and gradient.equal(results[0][1])


@pytest.mark.parametrize('name', POOLINGS)
def test_the_order_of_tokens_does_not_matter(sets, name):
    pooling, order, (embeddings, mask) = build(name), torch.randperm(7), sets
    torch.testing.assert_close(pooling(embeddings[:, order], mask[:, order]), pooling(*sets))


@pytest.mark.parametrize('name', POOLINGS)
def test_an_empty_set_gives_zeros_and_finite_gradients(sets, name):
    pooling, tokens, mask = build(name), sets[0].requires_grad_(), sets[1].clone()
    mask[2] = False
    pooled = pooling(tokens, mask)
    pooled.square().sum().backward()
    assert (pooled[2] == 0).all()
    assert tokens.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in pooling.parameters())


def test_the_weights_of_gpo_learn_and_sum_to_1(sets):
    pooling = build('GPOPooling')
    lengths = torch.tensor([1, 4, 7])
    weights = pooling.weights(lengths)
    torch.testing.assert_close(weights.sum(1), torch.ones(3))
    assert ((weights > 0).sum(1) == lengths).all()
    pooling(*sets).square().sum().backward()
    assert all(parameter.grad.any() for parameter in pooling.parameters())


def test_an_odd_width_of_the_sine_encoding_is_a_clear_error():
    with pytest.raises(ValueError, match='position_dims=7, expected an even number'):
        GPOPooling(WIDTH, position_dims=7)


class Own(nn.Module):
    """A pooling of a plug-in, which makes of the tokens what it is told."""

    def __init__(self, embed_dims, make, out_dims=WIDTH):
        super().__init__()
        self.make, self.out_dims = make, out_dims

    def forward(self, embeddings, attention_mask):
        return self.make(embeddings)


@pytest.mark.parametrize(
    ('make', 'found'),
    [
        (lambda x: x.mean(0), r'\(7, 6\)'),
        (lambda x: x.mean(1, keepdim=True), r'\(3, 1, 6\)'),
        (lambda x: x.flatten(1), r'\(3, 42\)'),
        (lambda x: x.max(1), 'max'),
    ],
)
def test_what_is_not_one_vector_a_set_is_refused(sets, make, found):
    pooling = build_pooling(dict(type=Own, make=make), WIDTH, 'backbone.image_pooling')
    with pytest.raises(ValueError, match=rf'Own makes {found} of tokens .*, expected \(3, 6\): a'):
        pool(pooling, *sets)


def test_a_pooling_that_does_not_say_its_width_is_refused():
    config = dict(type=Own, make=None, out_dims=None)
    message = r"backbone\.text_pooling\.type='Own' has no out_dims, the width of the vector"
    with pytest.raises(ConfigError, match=message):
        build_pooling(config, WIDTH, 'backbone.text_pooling')
