"""The scoring of all pairs against the literal loop over captions."""

from functools import partial

import pytest
import torch
from literal_sgraf import literal_logits
from token_sets import REGIONS, WIDTH, padded, token_sets

from xmodal.models.sgraf import all_pairs, saf_sgr, score_all_pairs
from xmodal.structures import PackedTexts, Tokens

TIGHT = dict(atol=2e-6, rtol=1e-5)


@torch.no_grad()
def test_scores_are_those_of_the_literal_loop(build, reasoning, pooling, images, captions):
    module = build(reasoning, pooling)
    expected = literal_logits(module, images, captions)
    actual = score_all_pairs(module, Tokens(torch.stack(images)), PackedTexts.from_list(captions))
    assert expected.std() > 0.01
    torch.testing.assert_close(actual.double(), expected, **TIGHT)


@torch.no_grad()
@pytest.mark.parametrize(
    ('pairs', 'words', 'nodes'), [(1, 1, 1), (21, 7, 20), (160, 80, 30), (10**6, 1000, 10**6)]
)
def test_scores_do_not_depend_on_the_tiles(
    build, reasoning, images, captions, pairs, words, nodes, monkeypatch
):
    monkeypatch.setattr(saf_sgr, 'CPU_NODES', nodes)
    monkeypatch.setattr(all_pairs, 'pair_budget', lambda *_: pairs)
    monkeypatch.setattr(all_pairs, 'words_at_once', lambda _: words)
    module = build(reasoning)
    expected = literal_logits(module, images, captions)
    actual = score_all_pairs(module, Tokens(torch.stack(images)), PackedTexts.from_list(captions))
    torch.testing.assert_close(actual.double(), expected, **TIGHT)


@torch.no_grad()
@pytest.mark.parametrize('pooling', ['t_emde', 'none'])
def test_images_may_have_any_number_of_regions(build, reasoning, pooling, captions):
    images = token_sets([5, 2, 7, 1])
    module = build(reasoning, pooling)
    expected = literal_logits(module, images, captions)
    # The content of padding must not matter.
    for filling in (0.0, 3.0):
        actual = score_all_pairs(
            module, padded(images, filling), PackedTexts.from_padded(*padded(captions, filling)[:2])
        )
        torch.testing.assert_close(actual.double(), expected, **TIGHT)


@torch.no_grad()
def test_self_attention_leaves_out_padding(build, captions):
    images = token_sets([REGIONS, 2])
    module = build('SAF', 'self_attention')
    actual = score_all_pairs(module, padded(images, 3.0), PackedTexts.from_list(captions))
    # The channels of the batch norm are the indices of regions: the literal one gets two of them.
    pooling_layer = module.global_pooling.image
    pooling_layer.local_norm.running_mean = pooling_layer.local_norm.running_mean[:2]
    pooling_layer.local_norm.running_var = pooling_layer.local_norm.running_var[:2]
    pooling_layer.local_norm.weight.data = pooling_layer.local_norm.weight[:2]
    pooling_layer.local_norm.bias.data = pooling_layer.local_norm.bias[:2]
    expected = literal_logits(module, images[1:], captions)
    torch.testing.assert_close(actual[1:].double(), expected, **TIGHT)


@torch.no_grad()
def test_one_image_and_one_word_are_enough(build, reasoning, pooling):
    module = build(reasoning, pooling)
    images, captions = token_sets([REGIONS]), token_sets([1])
    actual = score_all_pairs(module, Tokens(torch.stack(images)), PackedTexts.from_list(captions))
    expected = literal_logits(module, images, captions)
    torch.testing.assert_close(actual.double(), expected, **TIGHT)


@torch.no_grad()
def test_zero_rows_give_finite_scores(build, reasoning, pooling, images, captions):
    images[0][:] = 0
    images[1][2] = 0
    captions[0][1] = 0
    captions[1][:] = 0
    module = build(reasoning, pooling)
    actual = score_all_pairs(module, Tokens(torch.stack(images)), PackedTexts.from_list(captions))
    assert actual.isfinite().all()
    torch.testing.assert_close(actual.double(), literal_logits(module, images, captions), **TIGHT)


@torch.no_grad()
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_products_keep_the_order_of_scores(
    build, reasoning, pooling, images, captions, dtype
):
    module = build(reasoning, pooling)
    expected = literal_logits(module, images, captions)
    actual = score_all_pairs(
        module, Tokens(torch.stack(images)), PackedTexts.from_list(captions), dtype=dtype
    )
    assert actual.dtype == torch.float32
    # Differences of rows and columns are what ranks; those of a pair alone are small.
    error = (actual.double() - expected).square().mean().sqrt() / expected.std()
    assert 0 < error < (0.1 if dtype == torch.bfloat16 else 0.02)


def test_scores_of_sgraf_are_sigmoids(build):
    logits = torch.linspace(-3, 3, 5)
    torch.testing.assert_close(build().to_scores(logits), 1 / (1 + (-logits).exp()))


def test_a_caption_without_words_is_an_error(build, images):
    captions = [torch.randn(3, WIDTH), torch.randn(0, WIDTH)]
    with pytest.raises(ValueError, match='caption 1 has no words'):
        score_all_pairs(build(), Tokens(torch.stack(images)), PackedTexts.from_list(captions))


def test_training_mode_is_an_error(build, images, captions):
    with pytest.raises(ValueError, match=r'similarity\.eval\(\)'):
        score_all_pairs(
            build().train(), Tokens(torch.stack(images)), PackedTexts.from_list(captions)
        )


@pytest.mark.parametrize('regions', [REGIONS - 1, REGIONS + 1])
def test_self_attention_refuses_another_number_of_regions(build, captions, regions):
    images = Tokens(torch.randn(2, regions, WIDTH))
    with pytest.raises(ValueError, match=f'regions=5, but images have {regions}.*SketchGlobal'):
        score_all_pairs(build(pooling='self_attention'), images, PackedTexts.from_list(captions))


def test_an_unknown_bn_scope_is_an_error(build):
    with pytest.raises(ValueError, match="bn_scope='image', expected 'caption' or 'batch'"):
        build('SAF', bn_scope='image')


def test_the_progress_bar_counts_captions(build, images, captions, capsys):
    score_all_pairs(
        build(), Tokens(torch.stack(images)), PackedTexts.from_list(captions), progress=True
    )
    assert '7/7' in capsys.readouterr().err


@torch.no_grad()
def test_two_processes_score_what_one_does(build, reasoning, images, captions, monkeypatch):
    module = build(reasoning)
    expected = score_all_pairs(module, Tokens(torch.stack(images)), PackedTexts.from_list(captions))
    shares, summed = [], []
    monkeypatch.setattr(all_pairs, 'all_reduce', summed.append)
    for rank in range(2):
        monkeypatch.setattr(all_pairs, 'get_dist_info', lambda rank=rank: (rank, 2))
        tokens, texts = Tokens(torch.stack(images)), PackedTexts.from_list(captions)
        shares.append(score_all_pairs(module, tokens, texts))
    assert len(summed) == 2 and all(share.any() for share in shares)
    assert torch.equal(sum(shares), expected)


@torch.no_grad()
def test_a_compiled_tile_gives_the_same_scores(build, images, captions, monkeypatch):
    compiled = partial(torch.compile, backend='eager')
    monkeypatch.setattr(torch, 'compile', compiled)
    module = build('SGR')
    expected = score_all_pairs(module, Tokens(torch.stack(images)), PackedTexts.from_list(captions))
    actual = score_all_pairs(
        module, Tokens(torch.stack(images)), PackedTexts.from_list(captions), compile=True
    )
    torch.testing.assert_close(actual, expected, **TIGHT)
