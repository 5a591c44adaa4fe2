"""Attention with a position's terms against the literal M x N x D form."""

import math

import pytest
import torch
from torch import nn

from xmodal.models.layers.attention import Attention
from xmodal.structures import CrossTerms, LowRank

WIDTH, NUM_HEADS, GROUPS = 12, 3, 4
QUERIES, KEYS = 5, 7


@pytest.fixture
def attention():
    return Attention(WIDTH, NUM_HEADS).double()


def make_inputs(queries=QUERIES, keys=KEYS):
    return (
        torch.randn(2, queries, WIDTH, dtype=torch.float64),
        torch.randn(2, keys, WIDTH, dtype=torch.float64),
        torch.arange(keys)[None] < torch.tensor([[keys], [keys - 2]]),
    )


@pytest.fixture
def inputs():
    return make_inputs()


def low_rank(*shape):
    return LowRank(
        torch.randn(*shape, GROUPS, dtype=torch.float64),
        torch.randn(GROUPS, WIDTH, dtype=torch.float64),
    )


def literal(attention, query_tokens, context, mask, query=0, key=0, value=0, pairs=None, bias=None):
    """One head and one pair at a time; additions are to tokens, ``pairs`` is (B, Lq, Lk, D)."""
    query, key, value = (
        layer(tokens + extra)
        for layer, tokens, extra in (
            (attention.q_proj, query_tokens, query),
            (attention.k_proj, context, key),
            (attention.v_proj, context, value),
        )
    )
    width = WIDTH // NUM_HEADS
    attended = torch.zeros_like(query)
    for b in range(len(query)):
        for h in range(NUM_HEADS):
            part = slice(h * width, (h + 1) * width)
            for i in range(query.shape[1]):
                logits = []
                for j in range(key.shape[1]):
                    logit = query[b, i, part] @ key[b, j, part]
                    if bias is not None:
                        logit = logit + bias[b, 0, i, j]
                    logits.append(logit / math.sqrt(width) if mask[b, j] else -math.inf)
                probabilities = torch.tensor(logits, dtype=torch.float64).softmax(0)
                for j in range(key.shape[1]):
                    pair_value = value[b, j, part]
                    if pairs is not None:
                        pair_value = pair_value + pairs[b, i, j, part]
                    attended[b, i, part] += probabilities[j] * pair_value
    return attention.out_proj(attended)


def attend(attention, query_tokens, context, mask, **kwargs):
    query = attention.project(query_tokens, context=False)
    context = attention.project(context, query=False)
    return attention(query, context, mask, **kwargs)


@torch.no_grad()
@pytest.mark.parametrize('need_weights', [False, True])
def test_without_terms_it_is_plain_attention(attention, inputs, need_weights):
    actual, _ = attend(attention, *inputs, need_weights=need_weights)
    torch.testing.assert_close(actual, literal(attention, *inputs))


@torch.no_grad()
@pytest.mark.parametrize('need_weights', [False, True])
@pytest.mark.parametrize('role', ['query', 'key', 'value'])
def test_a_term_is_added_to_the_tokens_before_they_are_projected(
    attention, inputs, role, need_weights
):
    term = low_rank(2, QUERIES if role == 'query' else KEYS)
    actual, _ = attend(
        attention, *inputs, terms=CrossTerms(**{role: term}), need_weights=need_weights
    )
    torch.testing.assert_close(
        actual, literal(attention, *inputs, **{role: term.features @ term.weight})
    )


@torch.no_grad()
def test_a_pairs_term_is_added_to_the_values_pair_by_pair(attention, inputs):
    term = low_rank(2, QUERIES, KEYS)
    actual, _ = attend(attention, *inputs, terms=CrossTerms(pairs=term))
    torch.testing.assert_close(
        actual, literal(attention, *inputs, pairs=term.features @ term.weight)
    )


@torch.no_grad()
@pytest.mark.parametrize('need_weights', [False, True])
def test_a_bias_is_added_before_the_logits_are_scaled(attention, inputs, need_weights):
    bias = torch.randn(2, 1, QUERIES, KEYS, dtype=torch.float64)
    actual, _ = attend(attention, *inputs, terms=CrossTerms(bias=bias), need_weights=need_weights)
    torch.testing.assert_close(actual, literal(attention, *inputs, bias=bias))


def all_terms(queries, keys):
    terms = CrossTerms(
        low_rank(2, queries),
        low_rank(2, keys),
        low_rank(2, keys),
        low_rank(2, queries, keys),
        torch.randn(2, 1, queries, keys, dtype=torch.float64),
    )
    materialised = {
        name: term.features @ term.weight
        for name, term in terms._asdict().items()
        if name != 'bias'
    }
    return terms, dict(bias=terms.bias, **materialised)


@torch.no_grad()
@pytest.mark.parametrize(('queries', 'keys'), [(QUERIES, KEYS), (KEYS, QUERIES)])
def test_all_terms_together(attention, queries, keys):
    inputs = make_inputs(queries, keys)
    terms, materialised = all_terms(queries, keys)
    actual, _ = attend(attention, *inputs, terms=terms)
    torch.testing.assert_close(actual, literal(attention, *inputs, **materialised))


@torch.no_grad()
def test_a_context_that_pairs_share_is_attended_as_one_of_their_own(attention, inputs):
    tokens, context, mask = inputs
    context = context[:1].expand(2, -1, -1)
    terms, materialised = all_terms(QUERIES, KEYS)
    projected = attention.project(context[:1], query=False).select(torch.tensor([0, 0]))
    actual, _ = attention(attention.project(tokens, context=False), projected, mask, terms)
    torch.testing.assert_close(actual, literal(attention, tokens, context, mask, **materialised))


@torch.no_grad()
@pytest.mark.parametrize('pairs', [False, True])
def test_padding_gets_no_attention(attention, inputs, pairs):
    terms = CrossTerms(pairs=low_rank(2, QUERIES, KEYS) if pairs else None)
    _, probabilities = attend(attention, *inputs, terms=terms, need_weights=True)
    assert probabilities.shape == (2, NUM_HEADS, QUERIES, KEYS)
    assert (probabilities[1, :, :, -2:] == 0).all()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(2, 3, 5, dtype=torch.float64))


def test_dropout_acts_in_training_alone(inputs):
    attention = Attention(WIDTH, NUM_HEADS, dropout=0.5).double()
    term = CrossTerms(pairs=low_rank(2, QUERIES, KEYS))
    with torch.no_grad():
        in_training = [attend(attention, *inputs, terms=term)[0] for _ in range(2)]
        attention.eval()
        in_evaluation = [attend(attention, *inputs, terms=term)[0] for _ in range(2)]
    assert not in_training[0].equal(in_training[1])
    assert in_evaluation[0].equal(in_evaluation[1])


def test_no_output_projection_leaves_none_of_its_parameters():
    with_output, without = (
        sum(p.numel() for p in Attention(WIDTH, NUM_HEADS, output_projection=x).parameters())
        for x in (True, False)
    )
    assert with_output - without == sum(p.numel() for p in nn.Linear(WIDTH, WIDTH).parameters())


def test_a_number_of_heads_that_does_not_divide_the_width_is_an_error():
    with pytest.raises(ValueError, match='num_heads=5 must divide embed_dims=12'):
        Attention(12, 5)


@torch.no_grad()
@pytest.mark.parametrize('need_weights', [False, True])
def test_half_precision_stays_half_precision(inputs, need_weights):
    attention = Attention(WIDTH, NUM_HEADS).bfloat16()
    query_tokens, context, mask = inputs
    actual, _ = attend(
        attention, query_tokens.bfloat16(), context.bfloat16(), mask, need_weights=need_weights
    )
    assert actual.dtype == torch.bfloat16
    assert actual.isfinite().all()
