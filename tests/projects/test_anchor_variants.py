"""projects/anchor_variants against literal loops."""

import math

import numpy as np
import pytest
import torch

from projects.anchor_variants.anchor_variants import (
    ProjectedAnchors,
    QuantileAnchors,
    TransportAnchors,
)
from xmodal.functional import multi_group_similarity
from xmodal.models.necks import AnchorRelativePosition
from xmodal.structures import Tokens

WIDTH, GROUPS, WORDS = 8, 2, (6, 4)
SIZES = dict(depth=2, embed_dims=WIDTH, num_heads=2, groups=GROUPS)


@pytest.fixture
def image():
    return Tokens(torch.randn(2, 1 + 9, WIDTH), grid_size=(3, 3))


@pytest.fixture
def text():
    mask = torch.arange(WORDS[0]) < torch.tensor(WORDS)[:, None]
    return Tokens(torch.randn(2, WORDS[0], WIDTH), mask)


def test_a_projection_starts_as_the_paper_and_is_one_of_whole_tokens(image, text):
    position = ProjectedAnchors(**SIZES)
    expected = AnchorRelativePosition(**SIZES).distance(image, text)
    for found, wanted in zip(position.distance(image, text), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    for weight in (position.image_proj.weight, position.text_proj.weight):
        torch.nn.init.normal_(weight)
    patches = image.embeddings @ position.image_proj.weight.T
    words = text.embeddings @ position.text_proj.weight.T
    similarity = position.similarity(image, text)
    for group in range(GROUPS):
        part = slice(group * WIDTH // GROUPS, (group + 1) * WIDTH // GROUPS)
        literal = torch.nn.functional.cosine_similarity(
            patches[1, 4, part], words[1, 2, part], dim=0
        )
        torch.testing.assert_close(similarity[1, 4, 2, group], literal)


def test_a_quantile_makes_the_same_share_of_pairs_anchors(image, text):
    position = QuantileAnchors(**SIZES, quantile=0.75)
    similarity = position.similarity(image, text)
    plain = multi_group_similarity(image.embeddings, text.embeddings, GROUPS)
    for row, words in enumerate(WORDS):
        for group in range(GROUPS):
            pairs = plain[row, :, :words, group].flatten().numpy()
            threshold = np.quantile(pairs, 0.75)
            anchors = similarity[row, :, :words, group] >= position.delta
            assert int(anchors.sum()) == int((pairs >= threshold).sum())


def test_transport_is_that_of_literal_steps(image, text):
    position = TransportAnchors(**SIZES, epsilon=0.3, steps=40)
    found = position.similarity(image, text)
    plain = multi_group_similarity(image.embeddings, text.embeddings, GROUPS)
    for row, words in enumerate(WORDS):
        for group in range(GROUPS):
            kernel = [
                [math.exp(float(plain[row, i, j, group]) / 0.3) for j in range(words)]
                for i in range(10)
            ]
            for _ in range(40):
                for line in kernel:
                    total = sum(line)
                    line[:] = [value / total / 10 for value in line]
                for j in range(words):
                    total = sum(line[j] for line in kernel)
                    for line in kernel:
                        line[j] /= total * words
            plan = torch.tensor(kernel) * 10 * words - 1
            torch.testing.assert_close(found[row, :, :words, group], plan, atol=1e-4, rtol=1e-4)
        assert (found[row, :, words:] == -1).all()


@pytest.mark.parametrize('kind', [ProjectedAnchors, QuantileAnchors, TransportAnchors])
def test_gradients_reach_the_tokens_and_are_finite(kind, image, text):
    image = image._replace(embeddings=image.embeddings.requires_grad_())
    position = kind(**SIZES)
    relation = position.relate(image, text)
    relation.features.sum().backward()
    gradients = [image.embeddings.grad, *(p.grad for p in position.parameters() if p.requires_grad)]
    assert all(x.isfinite().all() for x in gradients if x is not None)
    assert image.embeddings.grad.any()
