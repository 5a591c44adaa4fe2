"""ACE-RPE and its control against the materialised embedding."""

import math

import pytest
import torch

from xmodal import functional as F
from xmodal.models.fusion import FusionEncoder
from xmodal.registry import MODELS
from xmodal.structures import Tokens

SIZES = dict(depth=2, embed_dims=32, num_heads=2)


@pytest.fixture
def double_tokens(tokens):
    return lambda **kwargs: tokens(dtype=torch.float64, **kwargs)


def literal_cross_attention(layer, position, index, image, text, queries):
    """Eqs. 8-12 with E_ace (B, M, N, D) built, through the rest of the layer."""
    relation = position.relate(image, text)
    index = 0 if position.shared else index
    real = text.attention_mask
    embedding = {
        role: relation.features.double() @ weight[index] for role, weight in position.weight.items()
    }
    no_embedding = torch.zeros(*relation.features.shape[:3], 32, dtype=torch.float64)
    from_text = queries == 'text'
    query_tokens, context, mask = (text, image, None) if from_text else (image, text, real)

    def mean(role, over_words):
        e = embedding.get(role, no_embedding)
        if over_words:
            e = e.masked_fill(~real[:, None, :, None], 0)
            return e.sum(2) / real.sum(1)[:, None, None]
        return e.mean(1)

    attention = layer.cross_attention
    query = attention.q_proj(query_tokens.embeddings + mean('query', over_words=not from_text))
    key = attention.k_proj(context.embeddings + mean('key', over_words=from_text))
    value = attention.v_proj(context.embeddings + mean('value', over_words=from_text))
    split = (2, 16)
    query, key, value = (x.unflatten(-1, split) for x in (query, key, value))
    logits = torch.einsum('bihd,bjhd->bhij', query, key)
    if 'bias' in embedding:
        bias = embedding['bias'] @ position.bias_projection[index]
        logits = logits + (bias.mT if from_text else bias)[:, None]
    logits = logits / 16**0.5
    if mask is not None:
        logits = logits.masked_fill(~mask[:, None, None], -math.inf)
    pair_values = embedding.get('value', no_embedding)
    pair_values = (pair_values.transpose(1, 2) if from_text else pair_values).unflatten(-1, split)
    pair_values = value[:, None] + pair_values  # (B, Lq, Lk, H, d)
    attended = torch.einsum('bhij,bijhd->bihd', logits.softmax(-1), pair_values).flatten(2)
    tokens = layer.cross_norm(query_tokens.embeddings + attention.out_proj(attended))
    return layer.feed_forward(tokens)


@torch.no_grad()
@pytest.mark.parametrize('queries', ['text', 'image'])
@pytest.mark.parametrize(
    'name',
    [
        'ace_rpe',
        'ace_rpe far',
        'ace_rpe learned',
        'ace_rpe shared',
        'ace_rpe query',
        'ace_rpe key',
        'ace_rpe value',
        'ace_rpe bias',
    ],
)
def test_a_layer_with_factors_equals_one_with_the_materialised_embedding(
    double_tokens, build_position, name, queries
):
    image, text = double_tokens()
    position = build_position(name).double()
    encoder = FusionEncoder(2, 32, num_heads=2, dropout=0.0).double()
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    layer = encoder.layers[1]
    relation = position.relate(image, text)
    query_tokens, context = (text, image) if queries == 'text' else (image, text)
    project = layer.cross_attention.project
    actual, _ = layer.attend_cross(
        query_tokens.embeddings,
        project(query_tokens.embeddings),
        project(context.embeddings),
        context.attention_mask,
        position.cross_terms(1, relation, queries),
        False,
    )
    expected = literal_cross_attention(layer, position, 1, image, text, queries)
    torch.testing.assert_close(actual, expected)


def test_the_relation_is_equations_3_to_7(tokens, build_position):
    image, text = tokens()
    position = build_position('ace_rpe')
    relation = position.relate(image, text)
    similarity = F.multi_group_similarity(image.embeddings, text.embeddings, 4)
    distance = F.relative_distance(F.anchor_distance(similarity), (3, 3), text.attention_mask)
    torch.testing.assert_close(relation.similarity, similarity)
    torch.testing.assert_close(relation.distance, distance)
    assert relation.distance[1, :, 5:].isinf().all()


def test_padding_of_a_grid_is_no_anchor(tokens, build_position):
    image, text = tokens()
    mask = torch.arange(10) < 7  # [CLS] and two of three rows
    padded = image._replace(attention_mask=mask.expand(len(image.embeddings), -1))
    without = Tokens(image.embeddings[:, :7], grid_size=(2, 3))
    position = build_position('ace_rpe')
    found, expected = position.relate(padded, text), position.relate(without, text)
    torch.testing.assert_close(found.features[:, :7], expected.features)
    torch.testing.assert_close(found.text_mean, expected.text_mean)
    torch.testing.assert_close(found.image_mean[:, :7], expected.image_mean)


def test_a_compiled_relation_keeps_the_gradient(tokens, build_position):
    """PyTorch 2.11 takes all that it compiles for an export, where distances need no gradient."""
    image, text = tokens()
    position = build_position('ace_rpe')

    def gradient(relate):
        leaf = image.embeddings.detach().requires_grad_()
        relation = relate(image.with_embeddings(leaf), text)
        return torch.autograd.grad(relation.features.square().sum(), leaf)

    compiled = torch.compile(position.relate, backend='aot_eager')
    torch.testing.assert_close(gradient(compiled), gradient(position.relate))


def test_no_reachable_path_is_longer_than_the_farthest(tokens, build_position):
    image, text = tokens(batch=8, grid=(5, 4))
    position = build_position('ace_rpe')
    distance = position.relate(image, text).distance
    assert position.farthest == pytest.approx(20 + math.sqrt(2) + 2)
    assert distance[distance.isfinite()].max() <= 2 * 20 + math.sqrt(2) + 2


def test_the_uniform_position_does_not_depend_on_tokens(tokens, build_position):
    position = build_position('uniform')
    image, text = tokens()
    other_image, other_text = tokens()
    relation, other = position.relate(image, text), position.relate(other_image, other_text)
    assert relation.distance.equal(other.distance)
    assert set(relation.distance.unique().tolist()) == {1.0, math.inf}


@pytest.mark.parametrize('name', ['ace_rpe', 'uniform'])
@pytest.mark.parametrize('has_cls', [True, False])
def test_statistics_are_shares_of_real_pairs(build_position, name, has_cls):
    first = int(has_cls)  # a grid after [CLS], or regions, both padded
    image_mask = torch.tensor([[True] * (first + 9), [True] * (first + 5) + [False] * 4])
    text_mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    where = dict(grid_size=(3, 3)) if has_cls else dict(boxes=torch.rand(2, 9, 4))
    image = Tokens(torch.randn(2, first + 9, 32), image_mask, **where)
    text = Tokens(torch.randn(2, 5, 32), text_mask)
    position = build_position(name)
    relation = position.relate(image, text)
    actual = position.statistics(relation, text_mask, image.content_mask(has_cls))
    assert ('anchor_share' in actual) == (name == 'ace_rpe')
    for b, (patches, words) in enumerate([(9, 5), (5, 3)]):
        pairs = [
            (b, first + patch, word, group)
            for patch in range(patches)
            for word in range(1, words)
            for group in range(position.groups)
        ]
        masked = sum(math.isinf(relation.distance[pair]) for pair in pairs)
        assert actual['masked_share'][b] == pytest.approx(masked / len(pairs))
        if name == 'ace_rpe':
            anchors = sum(float(relation.similarity[pair]) >= 0.05 for pair in pairs)
            assert actual['anchor_share'][b] == pytest.approx(anchors / len(pairs))


def test_a_text_without_words_has_no_share_of_anchors(build_position):
    position = build_position('ace_rpe')
    image = Tokens(torch.randn(2, 10, 32), grid_size=(3, 3))
    text_mask = torch.tensor([[True] * 4, [True, False, False, False]])
    relation = position.relate(image, Tokens(torch.randn(2, 4, 32), text_mask))
    for share in position.statistics(relation, text_mask, image.content_mask()).values():
        assert share.isfinite().all() and share[1] == 0


def test_each_layer_has_separate_weights_unless_shared(build_position):
    assert build_position('ace_rpe').weight['query'].shape == (2, 4, 32)
    assert build_position('ace_rpe shared').weight['query'].shape == (1, 4, 32)
    assert build_position('ace_rpe learned').weight['query'].shape == (2, 8, 32)


def test_switched_off_roles_have_no_weights(build_position):
    assert list(build_position('ace_rpe value').weight) == ['value']
    assert list(build_position('ace_rpe bias').weight) == ['bias']


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        (dict(mode='relative'), "position.mode='relative', expected one of contextual, bias"),
        (dict(null='mean'), "position.null='mean', expected one of zero, far, learned"),
        (dict(groups=5), 'position.groups=5 must divide the width of the tokens, 32'),
        (dict(patch_window=4), 'position.patch_window=4, expected an odd number'),
        (dict(token_window=0), 'position.token_window=0, expected an odd number'),
        (dict(delta=0), 'position.delta=0, expected a cosine above 0'),
    ],
)
def test_a_wrong_switch_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        MODELS.build({'type': 'AnchorRelativePosition', **wrong, **SIZES})
