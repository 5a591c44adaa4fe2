"""The absolute position through anchors, against loops over its equations."""

import math

import pytest
import torch

from xmodal.models.fusion import FusionEncoder
from xmodal.registry import MODELS
from xmodal.structures import Tokens


def literal_places(grid):
    """The centres of patches, row by row, as fractions of the image from −1 to 1."""
    rows, columns = grid
    return torch.tensor(
        [
            [(row + 0.5) / rows * 2 - 1, (column + 0.5) / columns * 2 - 1]
            for row in range(rows)
            for column in range(columns)
        ],
        dtype=torch.float64,
    )


def literal_attention(attention, position, layer, image, text):
    """A word's attended values, head by head, patch by patch; image and text are one row."""
    head_dims = 32 // 2
    group_dims = 32 // 4
    places = torch.cat([torch.zeros(1, 2, dtype=torch.float64), literal_places((2, 3))])
    query, key, value = (
        projection(tokens).detach()
        for projection, tokens in (
            (attention.q_proj, text),
            (attention.k_proj, image),
            (attention.v_proj, image),
        )
    )
    attended = torch.zeros(len(text), 32, dtype=torch.float64)
    for word in range(len(text)):
        anchored = []
        for patch in range(len(image)):
            total = 0.0
            for group in range(4):
                part = slice(group * group_dims, (group + 1) * group_dims)
                cosine = -1.0
                if patch > 0:
                    cosine = torch.cosine_similarity(image[patch, part], text[word, part], dim=0)
                total += position.similarity_weight[layer, group] * cosine
            anchored.append(total)
        for head in range(2):
            part = slice(head * head_dims, (head + 1) * head_dims)
            logits = torch.stack(
                [
                    query[word, part] @ key[patch, part] / math.sqrt(head_dims) + anchored[patch]
                    for patch in range(len(image))
                ]
            )
            weights = logits.softmax(0)
            for patch in range(len(image)):
                place = places[patch] @ position.place_weight[layer][:, part]
                attended[word, part] += weights[patch] * (value[patch, part] + place)
    return attended


@torch.no_grad()
def test_words_attend_to_their_anchors_and_learn_their_places(tokens, build_position):
    image, text = tokens(batch=2, grid=(2, 3), lengths=[6, 6], dtype=torch.float64)
    position = build_position('anchor_ape').double()
    encoder = FusionEncoder(2, 32, num_heads=2, dropout=0.0).double()
    attention = encoder.layers[1].cross_attention
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    relation = position.relate(image, text)
    actual, _ = attention(
        attention.project(text.embeddings),
        attention.project(image.embeddings),
        None,
        position.cross_terms(1, relation, 'text'),
    )
    for pair in range(2):
        expected = literal_attention(
            attention, position, 1, image.embeddings[pair], text.embeddings[pair]
        )
        torch.testing.assert_close(actual[pair], expected)


@torch.no_grad()
def test_patches_attend_to_words_by_the_same_logits_without_places(tokens, build_position):
    image, text = tokens()
    position = build_position('anchor_ape')
    relation = position.relate(image, text)
    of_words = position.cross_terms(0, relation, 'text')
    of_patches = position.cross_terms(0, relation, 'image')
    assert of_patches.pairs is None
    torch.testing.assert_close(of_patches.bias, of_words.bias.transpose(-1, -2))


@torch.no_grad()
def test_a_word_that_is_like_one_patch_learns_its_place(build_position):
    position = build_position('anchor_ape', random=False)
    position.similarity_weight.fill_(50.0)
    image = Tokens(torch.randn(1, 10, 32), None, (3, 3))
    words = image.embeddings[:, [6, 1]]  # of row 1, column 2, and of row 0, column 0
    text = Tokens(words, torch.ones(1, 2, dtype=torch.bool))
    terms = position.cross_terms(0, position.relate(image, text), 'text')
    attention = (terms.bias * 16**-0.5).softmax(-1)[:, 0]  # 32 / 2 heads
    places = torch.einsum('bnm,bnmc->bnc', attention, terms.pairs.features)
    expected = torch.tensor([[[0, 2 / 3], [-2 / 3, -2 / 3]]])
    torch.testing.assert_close(places, expected, atol=1e-4, rtol=0)


def test_the_place_of_a_region_is_the_centre_of_its_box(build_position):
    boxes = torch.tensor([[[0.0, 0.0, 0.5, 1.0], [0.5, 0.5, 1.0, 0.75]]])
    image = Tokens(torch.randn(1, 2, 32), torch.ones(1, 2, dtype=torch.bool), boxes=boxes)
    text = Tokens(torch.randn(1, 3, 32), torch.ones(1, 3, dtype=torch.bool))
    relation = build_position('anchor_ape').relate(image, text)
    assert relation.places.tolist() == [[[0.0, -0.5], [0.25, 0.5]]]
    assert relation.similarity.shape == (1, 2, 3, 4)


@pytest.mark.parametrize('position', ['AnchorAbsolutePosition', 'AnchorRelativePosition'])
@pytest.mark.parametrize('groups', [0, 5])
def test_groups_that_do_not_divide_the_width_are_an_error(position, groups):
    with pytest.raises(ValueError, match=f'groups={groups} must divide the width of .* 32'):
        MODELS.build(dict(type=position, depth=1, embed_dims=32, num_heads=2, groups=groups))
