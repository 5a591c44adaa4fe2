"""The narrow copy of a similarity, and the scoring of chosen pairs."""

import pytest
import torch
from token_sets import WIDTH, padded, token_sets

from xmodal.models.sgraf import PooledSimilarity, fused, narrow, score_all_pairs, score_pairs
from xmodal.structures import PackedTexts, Tokens

TIGHT = dict(atol=1e-5, rtol=1e-5)


@pytest.fixture
def tokens(images, captions):
    return Tokens(torch.stack(images)), PackedTexts.from_list(captions)


def test_a_copy_of_the_whole_width_gives_the_same_scores(build, reasoning, pooling, tokens):
    module = build(reasoning, pooling)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    expected = score_all_pairs(module, *tokens)
    actual = score_all_pairs(narrow(module, *tokens, 16), *tokens)
    assert expected.std() > 0.01
    torch.testing.assert_close(actual, expected, **TIGHT)
    torch.testing.assert_close(module.state_dict(), before, atol=0, rtol=0)


def test_directions_in_which_nodes_do_not_vary_cost_nothing(build, tokens):
    module = build('SAF', 'self_attention')
    plane = torch.linalg.qr(torch.randn(16, 3)).Q
    for linear in (module.local.linear, module.global_pooling.linear):
        linear.weight.data = plane @ plane.T @ linear.weight.data
        linear.bias.data = plane @ plane.T @ linear.bias.data
    copy = narrow(module, *tokens, 3)
    assert copy.local.linear.weight.shape == (3, WIDTH)
    torch.testing.assert_close(
        score_all_pairs(copy, *tokens), score_all_pairs(module, *tokens), **TIGHT
    )


@pytest.mark.parametrize('kind, is_fused', [('SAF', True), ('SGR', False)])
def test_steps_that_were_narrowed_go_without_the_kernels_of_a_gpu(build, tokens, kind, is_fused):
    module = build(kind, 'none')
    assert fused._has_kernels(module.reasoning)
    assert fused._has_kernels(narrow(module, *tokens, 4).reasoning) == is_fused


def test_bad_widths_and_similarities_are_named(build, tokens):
    for dim in (0, 17):
        with pytest.raises(ValueError, match=f'dim={dim}, expected 1 to 16'):
            narrow(build(), *tokens, dim)
    pooling = dict(type='MeanPooling')
    with pytest.raises(ValueError, match='a PooledSimilarity has no similarity vectors'):
        narrow(PooledSimilarity(WIDTH, pooling, pooling), *tokens, 8)


@pytest.mark.parametrize('share', [0.0, 0.3, 1.0])
def test_chosen_pairs_have_the_scores_of_all_pairs(build, reasoning, pooling, tokens, share):
    module = build(reasoning, pooling)
    chosen = torch.rand(4, len(tokens[1].lengths)) < share
    actual = score_pairs(module, *tokens, chosen)
    expected = score_all_pairs(module, *tokens).masked_fill(~chosen, 0)
    torch.testing.assert_close(actual, expected, **TIGHT)


def test_padding_of_regions_does_not_matter(build, captions):
    module, texts = build('SAF', 'none'), PackedTexts.from_list(captions)
    images, chosen = padded(token_sets([5, 2, 7]), 3.0), torch.rand(3, len(captions)) < 0.5
    expected = score_all_pairs(module, images, texts)
    actual = score_pairs(module, images, texts, chosen)
    torch.testing.assert_close(actual, expected.masked_fill(~chosen, 0), **TIGHT)
    copy = narrow(module, images, texts, 16)
    torch.testing.assert_close(score_all_pairs(copy, images, texts), expected, **TIGHT)


def test_ranks_share_the_images(build, tokens, monkeypatch):
    module, chosen = build(), torch.rand(4, len(tokens[1].lengths)) < 0.5
    expected, shares = score_pairs(module, *tokens, chosen), []
    path = 'xmodal.models.sgraf.some_pairs.'
    monkeypatch.setattr(path + 'all_reduce', lambda scores: shares.append(scores.clone()))
    for rank in range(3):
        monkeypatch.setattr(path + 'get_dist_info', lambda rank=rank: (rank, 3))
        score_pairs(module, *tokens, chosen)
    torch.testing.assert_close(sum(shares), expected, atol=0, rtol=0)
