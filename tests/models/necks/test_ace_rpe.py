"""The position plug-ins, each against its literal meaning."""

import math

import pytest
import torch

from xmodal import functional as F
from xmodal.models.fusion import FusionEncoder
from xmodal.models.necks.position import AbsoluteEmbedding, RelativeBias
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
        role: relation.placed.double() @ weight[index] for role, weight in position.weight.items()
    }
    no_embedding = torch.zeros(*relation.placed.shape[:3], 32, dtype=torch.float64)
    from_text = queries == 'text'
    asking, context, mask = (text, image, None) if from_text else (image, text, real)

    def mean(role, over_words):
        e = embedding.get(role, no_embedding)
        if over_words:
            e = e.masked_fill(~real[:, None, :, None], 0)
            return e.sum(2) / real.sum(1)[:, None, None]
        return e.mean(1)

    attention = layer.cross_attention
    query = attention.query(asking.embeddings + mean('query', over_words=not from_text))
    key = attention.key(context.embeddings + mean('key', over_words=from_text))
    value = attention.value(context.embeddings + mean('value', over_words=from_text))
    split = (2, 16)
    query, key, value = (x.unflatten(-1, split) for x in (query, key, value))
    logits = torch.einsum('bihd,bjhd->bhij', query, key)
    if 'bias' in embedding:
        bias = embedding['bias'] @ position.bias_projection[index]
        logits = logits + (bias.mT if from_text else bias)[:, None]
    logits = logits / 16**0.5
    if mask is not None:
        logits = logits.masked_fill(~mask[:, None, None], -math.inf)
    told = embedding.get('value', no_embedding)
    told = (told.transpose(1, 2) if from_text else told).unflatten(-1, split)
    told = value[:, None] + told  # (B, Lq, Lk, H, d)
    attended = torch.einsum('bhij,bijhd->bihd', logits.softmax(-1), told).flatten(2)
    tokens = layer.cross_norm(asking.embeddings + attention.output(attended))
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
def test_a_layer_with_factors_is_one_with_the_materialised_embedding(
    double_tokens, build_position, name, queries
):
    image, text = double_tokens()
    position = build_position(name).double()
    encoder = FusionEncoder(2, 32, num_heads=2, dropout=0.0).double()
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    layer = encoder.layers[1]
    relation = position.relate(image, text)
    sides = {'image': image, 'text': text}
    asking, context = sides.pop(queries), next(iter(sides.values()))
    project = layer.cross_attention.project
    found, _ = layer.attend_cross(
        asking.embeddings,
        project(asking.embeddings),
        project(context.embeddings),
        context.attention_mask,
        position.cross_terms(1, relation, queries),
        False,
    )
    expected = literal_cross_attention(layer, position, 1, image, text, queries)
    torch.testing.assert_close(found, expected)


def test_the_relation_is_equations_3_to_7(tokens, build_position):
    image, text = tokens()
    position = build_position('ace_rpe')
    relation = position.relate(image, text)
    similarity = F.multi_group_similarity(image.embeddings, text.embeddings, 4)
    distance = F.relative_distance(F.anchor_distance(similarity), (3, 3), text.attention_mask)
    torch.testing.assert_close(relation.similarity, similarity)
    torch.testing.assert_close(relation.distance, distance)
    assert relation.distance[1, :, 5:].isinf().all()


def test_no_reachable_path_is_longer_than_the_farthest(tokens, build_position):
    image, text = tokens(batch=8, grid=(5, 4))
    position = build_position('ace_rpe')
    distance = position.relate(image, text).distance
    assert position.farthest == pytest.approx(20 + math.sqrt(2) + 2)
    assert distance[distance.isfinite()].max() <= 2 * 20 + math.sqrt(2) + 2


def test_uniform_depends_on_no_token(tokens, build_position):
    position = build_position('uniform')
    image, text = tokens()
    other_image, other_text = tokens()
    relation, other = position.relate(image, text), position.relate(other_image, other_text)
    assert relation.distance.equal(other.distance)
    assert set(relation.distance.unique().tolist()) == {1.0, math.inf}


@pytest.mark.parametrize('name', ['ace_rpe', 'uniform'])
def test_statistics_are_shares_of_real_pairs(tokens, build_position, name):
    image, text = tokens(batch=3)
    position = build_position(name)
    relation = position.relate(image, text)
    found = position.statistics(relation, text)
    for b in range(3):
        words = int(text.attention_mask[b].sum())
        masked = relation.distance[b, 1:, 1:words].isinf().float().mean()
        torch.testing.assert_close(found['masked_share'][b], masked)
        if name == 'ace_rpe':
            anchors = (relation.similarity[b, 1:, 1:words] >= 0.05).float().mean()
            torch.testing.assert_close(found['anchor_share'][b], anchors)
    assert ('anchor_share' in found) == (name == 'ace_rpe')


def test_a_layer_has_weights_of_its_own_unless_shared(build_position):
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
    ],
)
def test_a_wrong_switch_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        MODELS.build({'type': 'ace_rpe', **wrong, **SIZES})


# positions of one modality


def test_absolute_position_adds_an_embedding_to_every_token(tokens, build_position):
    image, text = tokens()
    position = build_position('ape')
    found_image, found_text = position.embed_inputs(image, text)
    table = position.absolute
    torch.testing.assert_close(
        found_image.embeddings, image.embeddings + table.image_position.expand(2, -1, -1)
    )
    torch.testing.assert_close(
        found_text.embeddings, text.embeddings + table.text_position[:, :6].expand(2, -1, -1)
    )


def test_absolute_position_is_resampled_for_another_grid():
    table = AbsoluteEmbedding(4, (3, 3), 8)
    with torch.no_grad():
        table.image_position[:, 0] = 7.0
        table.image_position[:, 1:] = torch.arange(3.0).repeat(3)[:, None]  # the column
    image = Tokens(torch.zeros(1, 1 + 24, 4), None, (4, 6))
    found = table(image, Tokens(torch.zeros(1, 2, 4)))[0].embeddings[0, :, 0]
    assert found[0] == 7
    grid = found[1:].view(4, 6)
    assert (grid.diff(dim=1) > 0).all()
    torch.testing.assert_close(grid, grid[:1].expand(4, -1), atol=1e-5, rtol=0)


def test_a_text_longer_than_the_table_is_an_error(tokens, build_position):
    image, text = tokens(words=9)
    with pytest.raises(ValueError, match='a text of 9 tokens, but fusion position max_length=8'):
        build_position('ape').embed_inputs(image, text)


@torch.no_grad()
def test_relative_bias_of_an_image_depends_on_the_offset_alone():
    bias = RelativeBias(num_heads=2, max_offset=1, axes=2)
    torch.nn.init.normal_(bias.table)
    found = bias((3, 4))
    assert found.shape == (1, 2, 13, 13)
    places = [(row, column) for row in range(3) for column in range(4)]
    by_offset = {}
    for a, here in enumerate(places):
        for b, there in enumerate(places):
            offset = tuple(max(-1, min(1, x - y)) for x, y in zip(here, there, strict=True))
            by_offset.setdefault(offset, []).append(found[0, :, 1 + a, 1 + b])
    values = {offset: torch.stack(group) for offset, group in by_offset.items()}
    assert all((group == group[0]).all() for group in values.values())
    assert len({tuple(group[0].tolist()) for group in values.values()}) == 9
    cls = torch.cat([found[0, :, 0], found[0, :, :, 0]], -1)
    assert (cls == cls[:, :1]).all()


@torch.no_grad()
def test_relative_bias_of_a_text_tells_left_from_right():
    bias = RelativeBias(num_heads=1, max_offset=2, axes=1)
    torch.nn.init.normal_(bias.table)
    found = bias((5,))[0, 0, 1:, 1:]
    for a in range(5):
        for b in range(5):
            assert found[a, b] == bias.table[0, max(-2, min(2, a - b)) + 2]


def test_a_plug_in_that_overrides_nothing_changes_nothing(tokens, build_position):
    image, text = tokens()
    position = build_position('none')
    assert position.embed_inputs(image, text) == (image, text)
    assert position.relate(image, text) is None
    assert position.self_bias(0, text) is None
    assert all(term is None for term in position.cross_terms(0, None, 'text'))
