"""The dual encoder."""

import pytest
import torch
from token_sets import WIDTH, padded, token_sets
from torch.nn.functional import cosine_similarity

from xmodal.models.sgraf import score_all_pairs
from xmodal.registry import MODELS
from xmodal.structures import PackedTexts

POOLINGS = {
    'sketch': dict(type='TEMDE', partitions=3, centroids=4, inner_dims=2),
    'mean': dict(type='MeanPooling'),
    'max': dict(type='MaxPooling'),
    'gpo': dict(type='GPOPooling'),
}


@pytest.fixture(params=list(POOLINGS))
def module(request):
    config = POOLINGS[request.param]
    return MODELS.build(
        dict(
            type='PooledSimilarity',
            embed_dims=WIDTH,
            proj_dims=8,
            image_pooling=config,
            text_pooling=config,
        )
    ).eval()


@torch.no_grad()
def test_scores_are_cosines_of_projected_poolings(module):
    images, captions = token_sets([5, 2, 7]), token_sets([6, 3, 20, 6])
    actual = score_all_pairs(module, padded(images), PackedTexts.from_list(captions))
    assert actual.equal(module.to_scores(actual))
    for i, regions in enumerate(images):
        image = module.image_proj(module.image_pooling(regions[None]))
        for t, words in enumerate(captions):
            text = module.text_proj(module.text_pooling(words[None]))
            expected = cosine_similarity(image, text)[0]
            assert actual[i, t].item() == pytest.approx(expected.item(), abs=1e-6)


@torch.no_grad()
def test_widths_may_differ_and_a_network_may_follow_the_pooling():
    module = MODELS.build(
        dict(
            type='PooledSimilarity',
            embed_dims=(WIDTH, 5),
            proj_dims=8,
            hidden_dims=12,
            dropout=0.5,
            image_pooling=dict(type='MeanMaxPooling'),
            text_pooling=dict(type='MeanPooling'),
        )
    ).eval()
    images = token_sets([5, 2])
    captions = [torch.randn(3, 5), torch.randn(6, 5)]

    def literal(projection, x):
        x = (x - x.mean()) / (x.var(correction=0) + 1e-5).sqrt()
        first, _, _, second = projection.feed_forward
        h = first.weight @ x + first.bias
        h = h * 0.5 * (1 + torch.erf(h / 2**0.5))
        linear = projection.linear
        y = linear.weight @ x + linear.bias + second.weight @ h + second.bias
        return y / y.norm()

    actual = score_all_pairs(module, padded(images), PackedTexts.from_list(captions))
    for i, regions in enumerate(images):
        pooled = torch.cat([regions.mean(0), regions.max(0).values])
        for t, words in enumerate(captions):
            expected = literal(module.image_proj, pooled) @ literal(module.text_proj, words.mean(0))
            assert actual[i, t].item() == pytest.approx(expected.item(), abs=1e-5)


def test_training_gives_equal_scores_with_gradients(module):
    images, captions = padded(token_sets([5, 2, 7])), padded(token_sets([6, 3, 20]))
    actual = module(images, captions)
    expected = score_all_pairs(module, images, PackedTexts.from_padded(*captions[:2]))
    torch.testing.assert_close(actual.detach(), expected)
    actual.sum().backward()
    assert all(value.grad is not None for value in module.parameters())
