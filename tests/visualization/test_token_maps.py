"""Maps of words and texts over the tokens of an image, against those of single pairs."""

import pytest
import torch

from xmodal.models.necks import AnchorAbsolutePosition
from xmodal.registry import MODELS
from xmodal.structures import Regions
from xmodal.visualization.anchors import similarity_map
from xmodal.visualization.grad_cam import grad_cam
from xmodal.visualization.token_maps import NEARNESS, SIMILARITY, text_maps, word_maps


@pytest.fixture
def model(tiny_config):
    tiny_config.model.backbone.image_encoder.conv_stem = False  # a map has one value a patch
    tiny_config.model.backbone.fusion.depth = 2  # the last layer has no maps of words
    tiny_config.model.backbone.position.delta = 0.45  # some patches are reached by no anchor
    torch.manual_seed(0)
    model = MODELS.build(tiny_config.model).eval()
    for parameter in model.backbone.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.fixture
def pair(model):
    with torch.no_grad():
        image = model.encode_image(torch.randn(2, 3, 32, 32)).tokens
        mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
        return image, model.encode_text(torch.randint(5, 60, (2, 6)), mask).tokens


def test_maps_are_those_of_words_and_patches_without_cls(model, pair):
    with torch.no_grad():
        maps, relation = word_maps(model, *pair), model.relate(*pair)
    attended, _ = grad_cam(model, *pair, 0)
    assert set(maps) == {SIMILARITY, NEARNESS, 'Grad-CAM, layer 1 of 2'} and attended.any()
    for row in range(2):
        for patch in range(16):  # a grid of 4 x 4
            for word in range(5):
                own, in_pair = (row, patch, word), (row, 1 + patch, 1 + word)
                assert maps[SIMILARITY][own].equal(relation.similarity[in_pair])
                assert maps[NEARNESS][own].equal(-relation.distance[in_pair])
                heat = maps['Grad-CAM, layer 1 of 2'][own]
                assert heat == attended[row, 1 + word, patch // 4, patch % 4]


def test_maps_of_texts_are_means_over_their_words(model, pair):
    with torch.no_grad():
        maps, relation = text_maps(model, *pair), model.relate(*pair)
    similarity = similarity_map(model, *pair).flatten(1)
    torch.testing.assert_close(maps[SIMILARITY].mean(-1), similarity)
    for layer in range(2):
        heat = maps[f'Grad-CAM, layer {layer + 1} of 2']
        torch.testing.assert_close(heat, grad_cam(model, *pair, layer)[1].flatten(1))
    unreached = 0
    for row, words in enumerate((6, 4)):
        paths = relation.distance[row, 1:, 1:words]  # with [SEP]
        farthest = paths[paths.isfinite()].max()
        for patch in range(16):
            for group in range(paths.shape[-1]):
                lengths = [float(path) for path in paths[patch, :, group]]
                unreached += lengths.count(torch.inf)
                lengths = [min(length, float(farthest)) for length in lengths]
                mean = sum(lengths) / len(lengths)
                assert float(maps[NEARNESS][row, patch, group]) == pytest.approx(-mean, rel=1e-5)
    assert unreached


@torch.no_grad()
def test_regions_have_grad_cam_each_and_no_cls(relocated, tiny_world):
    torch.manual_seed(0)
    config = relocated('configs/acerpe/pretrain_shapes_regions.py', tiny_world)
    model = MODELS.build(config.model).eval()
    corners = torch.rand(2, 6, 2, 2).sort(2).values
    boxes = torch.cat([corners[:, :, 0], corners[:, :, 1]], -1)
    regions = Regions(torch.randn(2, 6, 259), torch.ones(2, 6, dtype=bool), boxes)
    image = model.encode_image(regions).tokens
    text = model.encode_text(torch.randint(5, 40, (2, 5)), torch.ones(2, 5, dtype=bool)).tokens
    of_words, of_texts = word_maps(model, image, text), text_maps(model, image, text)
    depth = model.backbone.fusion.depth
    assert len(of_words) == 1 + depth and len(of_texts) == 2 + depth
    assert {values.shape[:3] for values in of_words.values()} == {(2, 6, 4)}
    assert {values.shape[:2] for values in of_texts.values()} == {(2, 6)}
    assert of_texts['Grad-CAM, layer 1 of 2'].any()


@torch.no_grad()
def test_a_model_has_the_maps_of_its_position_and_heads(model, pair):
    """AnchorAbsolutePosition has no distances, and no position nothing of Eq. 3."""
    sizes = dict(depth=2, embed_dims=model.backbone.fusion.embed_dims, num_heads=2)
    model.backbone.position = AnchorAbsolutePosition(groups=4, **sizes)
    del model.heads['itm']
    maps = word_maps(model, *pair)
    assert set(maps) == set(text_maps(model, *pair)) == {SIMILARITY}
    literal = model.relate(*pair).similarity[:, 1:, 1:]
    torch.testing.assert_close(maps[SIMILARITY], literal)
    for name in ('NoPosition', 'UniformPosition'):
        model.backbone.position = MODELS.build(dict(type=name, **sizes))
        assert word_maps(model, *pair) == {}
