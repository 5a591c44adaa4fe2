"""The cascade against a literal search for candidates, and its best against those of all pairs."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from xmodal.engine.loops import CascadeScorer
from xmodal.models.sgraf import ImageTextMatcher, SGRAFSimilarity, narrow, score_all_pairs
from xmodal.structures import PackedTexts, Tokens

IMAGES, REGIONS, WIDTH, TOPK = 6, 4, 12, 3


@pytest.fixture
def model():
    model = ImageTextMatcher.__new__(ImageTextMatcher)  # the scorer takes encoded tokens
    nn.Module.__init__(model)
    model.similarity = SGRAFSimilarity(WIDTH, dict(type='SAF'), dim=8)
    return model.eval()


@pytest.fixture
def encoded():
    def rows(count):
        return normalize(torch.randn(count, WIDTH), dim=-1)

    return SimpleNamespace(
        image_tokens=Tokens(torch.stack([rows(REGIONS) for _ in range(IMAGES)])),
        texts=PackedTexts.from_list([rows(3 + row % 3) for row in range(2 * IMAGES)]),
        text_to_image=torch.arange(IMAGES).repeat_interleave(2),
    )


def literal_candidates(scores, fold_of_image):
    """The pairs of an image and a text, each query's best of its own fold."""
    pairs, images, texts = set(), range(IMAGES), range(2 * IMAGES)
    for image in images:
        own = [text for text in texts if fold_of_image(text // 2) == fold_of_image(image)]
        best = sorted(own, key=lambda text: -scores[image, text])[:TOPK]
        pairs |= {(image, text) for text in best}
    for text in texts:
        own = [image for image in images if fold_of_image(text // 2) == fold_of_image(image)]
        best = sorted(own, key=lambda image: -scores[image, text])[:TOPK]
        pairs |= {(image, text) for image in best}
    return pairs


@pytest.mark.parametrize('folds', [(1,), (2,), (1, 2)])
def test_candidates_are_exact_and_the_others_below_in_the_order_of_the_first_stage(
    model, encoded, folds
):
    tokens = encoded.image_tokens, encoded.texts
    copy = narrow(model.similarity, *tokens, 2)
    first = score_all_pairs(copy, *tokens, dtype=torch.bfloat16)
    exact = score_all_pairs(model.similarity, *tokens)
    expected = set()
    for count in folds:
        expected |= literal_candidates(first, lambda image, size=IMAGES // count: image // size)
    gallery = CascadeScorer(topk=TOPK, dim=2).score(model, encoded, folds)
    chosen = torch.zeros_like(first, dtype=torch.bool)
    chosen[tuple(torch.tensor(sorted(expected)).T)] = True
    assert 0 < chosen.sum() < chosen.numel()
    found = gallery.scores[chosen].float()
    torch.testing.assert_close(found, exact[chosen], atol=1e-5, rtol=1e-5)
    assert gallery.scores[~chosen].max() < gallery.scores[chosen].min()
    assert gallery.scores[~chosen].argsort().equal(first[~chosen].double().argsort())
    assert gallery.t2i_scores is None


def test_with_all_pairs_as_candidates_the_scores_are_exact(model, encoded):
    exact = score_all_pairs(model.similarity, encoded.image_tokens, encoded.texts)
    gallery = CascadeScorer(topk=100, dim=1).score(model, encoded)
    torch.testing.assert_close(gallery.scores.float(), exact, atol=1e-5, rtol=1e-5)


def test_directions_that_a_similarity_does_not_have_are_refused_before_anything_is_scored(model):
    CascadeScorer(dim=8).check_model(model)
    with pytest.raises(ValueError, match=r'dim=9, expected 1 to 8, similarity\.dim'):
        CascadeScorer(dim=9).check_model(model)
    model.similarity = nn.Identity()
    with pytest.raises(ValueError, match='Identity has no similarity vectors to narrow'):
        CascadeScorer(dim=8).check_model(model)


def test_a_cascade_without_candidates_is_refused():
    with pytest.raises(ValueError, match=r'scorer\.topk=0 .* at least 1: AllPairsScorer'):
        CascadeScorer(topk=0)
