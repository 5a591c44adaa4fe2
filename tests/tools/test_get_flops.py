"""FLOPs by part, compared with counts by hand: two operations a multiply-add."""

import sys

import pytest
import torch
from torch import nn

from tools.analysis import get_flops
from xmodal.benchmark.flops import count, count_parts
from xmodal.errors import ConfigError
from xmodal.models.albef import AlbefBackbone
from xmodal.models.layers import Attention


def linear(tokens, inputs, outputs):
    return 2 * tokens * inputs * outputs


def attention(queries, context, width):
    """Logits and weighted sums of all heads together; no projections."""
    return 2 * (2 * queries * context * width)


def test_a_linear_layer_is_counted():
    layer = nn.Linear(48, 20).requires_grad_(False)
    result, flops = count(layer, torch.zeros(3, 7, 48))
    assert result.shape == (3, 7, 20) and flops == linear(3 * 7, 48, 20) == 40_320


def test_an_attention_is_counted():
    layer = Attention(embed_dims=32, num_heads=4).eval().requires_grad_(False)

    def attend(tokens):
        projected = layer.project(tokens)
        return layer(projected, projected)

    _, flops = count(attend, torch.zeros(1, 10, 32))
    assert flops == 4 * linear(10, 32, 32) + attention(10, 10, 32) == 94_720


@pytest.fixture
def backbone(tiny_config):
    """Width 32, two heads, one layer in each part, 32 pixels in patches of 8, text of 12 pieces."""
    tiny_config.model.backbone.image_encoder.conv_stem = False
    return tiny_config.model.backbone


def expected_parts(backbone, words):
    width, patches = 32, (32 // 8) ** 2
    projection = linear(1, width, backbone.proj_dims)
    image, total = 1 + patches, 1 + patches + words

    def block(tokens, inner):
        own = 4 * linear(tokens, width, width) + attention(tokens, tokens, width)
        return own + linear(tokens, width, inner) + linear(tokens, inner, width)

    patch_embedding = linear(patches, 3 * 8 * 8, width)
    # A fusion layer: as a block, and a cross-attention without output projection.
    cross = 3 * linear(total, width, width) + 2 * attention(image, words, width)
    streams = sum(block(tokens, backbone.fusion.feedforward_dims) for tokens in (image, words))
    return {
        'image encoder': patch_embedding + block(image, 2 * width) + projection,
        'text encoder': block(words, width) + projection,  # intermediate_size is the width, too
        'fusion encoder': streams + cross,
    }


def test_the_parts_of_a_tiny_model_are_those_counted_by_hand(backbone):
    counted = count_parts(AlbefBackbone(**backbone), image_size=32, num_words=12)
    expected = expected_parts(backbone, words=12)
    assert {name: counted[name] for name in expected} == expected
    assert counted['without position'] == sum(expected.values())
    assert counted['position'] > 0
    assert counted['total'] == counted['without position'] + counted['position']


def test_no_position_adds_nothing(backbone):
    backbone.position = dict(type='NoPosition')
    counted = count_parts(AlbefBackbone(**backbone), image_size=32, num_words=12)
    assert counted['position'] == 0


def test_the_papers_figures_stand_beside_its_own_model_alone(monkeypatch, capsys):
    def printed(config):
        monkeypatch.setattr(sys, 'argv', ['get_flops.py', config])
        get_flops.main()
        return capsys.readouterr().out

    lines = printed('configs/acerpe/retrieval_coco.py').splitlines()
    assert lines[0] == 'GFLOPs of configs/acerpe/retrieval_coco.py, an image of 384 x 384, 30 words'
    (without,) = (line for line in lines if 'without position' in line)
    assert without.replace('│', '').split() == ['without', 'position', '129.6', '115']
    assert lines[-1].endswith(', 6.1 % in the paper')
    assert 'paper' not in printed('configs/acerpe/pretrain_shapes.py')


def test_a_model_of_another_kind_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['get_flops.py', 'configs/lxmert/vqa_v2.py'])
    with pytest.raises(
        ConfigError, match=r'vqa_v2\.py: model\.backbone has no fusion encoder over'
    ):
        get_flops.main()
