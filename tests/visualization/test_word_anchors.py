"""Anchors of words against a literal loop over Eqs. 3-5 with planted tokens, and their drawing."""

import math

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from xmodal.models.necks import NoPosition
from xmodal.registry import MODELS
from xmodal.structures import Relation, Tokens
from xmodal.visualization import WordAnchors, draw_anchors
from xmodal.visualization.anchors import word_anchors

GROUPS, RUN = 4, 8  # of the 32 dimensions
DELTA, TAU = 0.05, 1e4
WORDS = ['[CLS]', 'the', 'red', 'ring', '[SEP]']
# (word, patch, group): the cosine of their runs; all other cosines are 0.
PLANTED = {
    (2, 5, 1): 0.9,
    (2, 6, 1): 0.9,
    (2, 6, 3): 0.051,
    (3, 10, 0): 0.049,
    (3, 15, 2): 1.0,
    (4, 0, 2): -0.9,
}


def build_model(config, **position):
    config.model.backbone.position = position or config.model.backbone.position
    torch.manual_seed(0)
    return MODELS.build(config.model).eval()


def plant_tokens():
    """A grid of 4 × 4 patches and the words, of lengths that no cosine depends on.

    In a run, words lie along axis 0 and patches along another, unless they are planted.
    """
    patches, words = torch.zeros(1, 17, GROUPS, RUN), torch.zeros(1, 5, GROUPS, RUN)
    patches[..., 7], words[..., 0] = 1, 1
    for (word, patch, group), cosine in PLANTED.items():
        axis = word  # one for each word, so that a patch is like this word alone
        words[0, word, group] = torch.eye(RUN)[axis]
        patches[0, 1 + patch, group] = cosine * torch.eye(RUN)[axis]
        patches[0, 1 + patch, group, 7] = math.sqrt(1 - cosine**2)
    lengths = torch.linspace(0.5, 3, 17).view(1, 17, 1, 1)
    image = Tokens((lengths * patches).flatten(2), None, (4, 4))
    text = Tokens((lengths[:, :5] * words).flatten(2), torch.ones(1, 5, dtype=torch.bool))
    return image, text


def literal_anchors(image, text, word):
    """Eqs. 3-5 for every patch and group of a word."""
    result = torch.zeros(4, 4, GROUPS, dtype=torch.bool)
    for patch in range(16):
        for group in range(GROUPS):
            run = slice(RUN * group, RUN * (group + 1))
            x = image.embeddings[0, 1 + patch, run].tolist()
            y = text.embeddings[0, word, run].tolist()
            product = sum(a * b for a, b in zip(x, y, strict=True))
            similarity = product / (math.hypot(*x) * math.hypot(*y))  # Eq. 3
            shrunk = similarity  # Eq. 4
            if similarity < DELTA:
                shrunk = DELTA * math.exp(TAU * (similarity - DELTA))
            result[patch // 4, patch % 4, group] = shrunk >= DELTA  # Eq. 5
    return result


def test_the_anchors_of_planted_tokens_are_those_of_the_equations(tiny_config):
    model = build_model(tiny_config)
    image, text = plant_tokens()
    found = word_anchors(model, image, text, WORDS)
    assert [anchors.word for anchors in found] == WORDS
    for word, anchors in enumerate(found):
        assert torch.equal(anchors.patches, literal_anchors(image, text, word))
    expected = {place for place, cosine in PLANTED.items() if cosine >= DELTA}
    planted = {
        (word, 4 * row + column, group)
        for word, anchors in enumerate(found)
        for row, column, group in anchors.patches.nonzero().tolist()
    }
    assert planted == expected
    assert [anchors.is_anchor for anchors in found] == [False, False, True, True, False]
    assert found[2].share[1].tolist() == [0, 0.25, 0.5, 0]  # patches 4 to 7: of four groups


def test_random_tokens_have_the_anchors_of_the_equations(tiny_config):
    model = build_model(tiny_config)
    torch.manual_seed(3)
    image = Tokens(torch.randn(1, 17, GROUPS * RUN), None, (4, 4))
    text = Tokens(torch.randn(1, 5, GROUPS * RUN), torch.ones(1, 5, dtype=torch.bool))
    found = word_anchors(model, image, text, WORDS)
    assert 0 < torch.stack([anchors.patches for anchors in found]).float().mean() < 1
    for word, anchors in enumerate(found):
        assert torch.equal(anchors.patches, literal_anchors(image, text, word))


class OtherRelation(NoPosition):
    """A position of somebody else, which relates by similarity without anchors."""

    def relate(self, image, text):
        similarity = image.embeddings @ text.embeddings.transpose(1, 2)
        return Relation(similarity=similarity[..., None])


@pytest.mark.parametrize('position', ['none', 'uniform', OtherRelation])
def test_a_position_without_anchors_has_no_words(tiny_config, position):
    model = build_model(tiny_config, type=position)
    assert word_anchors(model, *plant_tokens(), WORDS) == []


def planted_word(word, *patches):
    """A word with anchors in given patches and all of two groups."""
    anchors = torch.zeros(4, 4, 2, dtype=torch.bool)
    for row, column in patches:
        anchors[row, column] = True
    return WordAnchors(word, anchors)


def test_a_drawing_changes_where_anchors_are_planted():
    image = np.random.default_rng(0).integers(40, 255, (32, 48, 3)).astype(np.uint8)
    words = [planted_word('the'), planted_word('red', (0, 0)), planted_word('ring', (0, 0), (2, 3))]
    figure = draw_anchors(image, words)
    assert [axes.get_title() for axes in figure.axes] == ['the  0%', 'red  6%', 'ring  12%']
    without, one, two = (axes.images[0].get_array() for axes in figure.axes)
    assert (without < image / 2).all()
    np.testing.assert_array_equal(one[:8, :12], image[:8, :12])
    changed = (one != without).any(-1)
    assert changed[:8, :12].all() and not changed[8:].any() and not changed[:, 12:].any()
    changed = (two != one).any(-1)
    assert changed[16:24, 36:].all() and changed.sum() == 8 * 12


def test_words_with_an_anchor_are_red_and_the_number_of_panels_is_that_of_the_words():
    words = [planted_word('the')] * 7 + [planted_word('red', (1, 1))]
    figure = draw_anchors(np.zeros((8, 8, 3), np.uint8), words)
    colours = [to_hex(axes.title.get_color()) for axes in figure.axes if axes.images]
    assert len(colours) == 8 and set(colours[:7]) == {'#555555'}
    red, green, blue = (int(colours[7][i : i + 2], 16) for i in (1, 3, 5))
    assert red > 3 * green and red > 3 * blue
