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


def test_training_gives_equal_scores_with_gradients(module):
    images, captions = padded(token_sets([5, 2, 7])), padded(token_sets([6, 3, 20]))
    actual = module(images, captions)
    expected = score_all_pairs(module, images, PackedTexts.from_padded(*captions[:2]))
    torch.testing.assert_close(actual.detach(), expected)
    actual.sum().backward()
    assert all(value.grad is not None for value in module.parameters())
