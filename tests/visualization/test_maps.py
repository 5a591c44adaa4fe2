"""Heat maps and anchor maps against literal loops, and the report."""

import json
import re
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

from xmodal.apis import Inferencer
from xmodal.engine.launch import build_runner
from xmodal.registry import MODELS
from xmodal.visualization import grad_cam
from xmodal.visualization.anchors import word_anchors
from xmodal.visualization.heat_maps import choose_words
from xmodal.visualization.report import chance_recall, metric_stages, write_report


@pytest.fixture
def model(tiny_config):
    tiny_config.model.backbone.image_encoder.conv_stem = False  # a map has one value a patch
    torch.manual_seed(0)
    model = MODELS.build(tiny_config.model).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.fixture
def pair(model):
    with torch.no_grad():
        image = model.encode_image(torch.randn(2, 3, 32, 32))
        mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
        text = model.encode_text(torch.randint(5, 60, (2, 6)), mask)
    return image.tokens, text.tokens


@pytest.mark.parametrize('score', ['yes', 'difference'])
def test_grad_cam_is_positive_gradient_times_attention_head_by_head(model, pair, score):
    assert model.matching_head.score == 'yes'
    model.matching_head.score = score
    image, text = pair
    words, whole = grad_cam(model, image, text)
    image = image._replace(embeddings=image.embeddings.clone().requires_grad_())
    fused = model.backbone.fuse(image, text, need_attentions=True)
    attention = fused.attentions[0].text_to_image
    for b in range(2):
        no, yes = model.heads['itm'](fused.text_tokens)[b]
        scored = yes if score == 'yes' else yes - no
        gradient = torch.autograd.grad(scored, attention, retain_graph=True)[0][b]
        count = int(text.attention_mask[b].sum())
        total = torch.zeros(4, 4)
        for n in range(count):
            expected = torch.zeros(4, 4)
            for patch in range(16):
                for head in range(2):
                    slope = gradient[head, n, 1 + patch].item()
                    share = attention[b, head, n, 1 + patch].item()
                    expected[patch // 4, patch % 4] += max(slope, 0) * share / 2
            torch.testing.assert_close(words[b, n], expected, atol=1e-6, rtol=1e-4)
            total += expected
        torch.testing.assert_close(whole[b], total / count, atol=1e-6, rtol=1e-4)
    assert whole.max() > 0


def build_deep_model(tiny_config, streams):
    """Builds a model of three fusion layers: one below and one above the default layer."""
    tiny_config.model.backbone.fusion.update(depth=3, streams=streams)
    tiny_config.model.backbone.image_encoder.conv_stem = False
    tiny_config.model.heads.mim = None  # needs an image stream
    torch.manual_seed(1)
    model = MODELS.build(tiny_config.model).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def literal_map(model, image, text, layer):
    """Computes the map of one pair with back-propagation through the whole model."""
    image = image._replace(embeddings=image.embeddings.clone().requires_grad_())
    fused = model.backbone.fuse(image, text, need_attentions=True)
    attention = fused.attentions[layer].text_to_image
    _, yes = model.heads['itm'](fused.text_tokens)[0]
    (gradient,) = torch.autograd.grad(yes, attention)
    return (attention * gradient.clamp(min=0)).detach().mean(1)[0, :, 1:].mean(0).view(4, 4)


@pytest.mark.parametrize('streams', ['both', 'text'])
@pytest.mark.parametrize('layer', [None, 0, 2, -1, -3])
def test_the_map_of_a_pair_is_the_same_alone_and_in_a_batch(tiny_config, pair, streams, layer):
    model, (image, text) = build_deep_model(tiny_config, streams), pair
    _, maps = grad_cam(model, image, text, layer)
    for b in range(2):
        row = torch.tensor([b])
        count = int(text.attention_mask[b].sum())
        alone = text.select(row)
        alone = alone._replace(
            embeddings=alone.embeddings[:, :count], attention_mask=alone.attention_mask[:, :count]
        )
        # The default is the third of six layers, the second of three.
        expected = literal_map(model, image.select(row), alone, 1 if layer is None else layer)
        torch.testing.assert_close(maps[b], expected, atol=1e-6, rtol=1e-4)
        assert expected.max() > 0


def test_grad_cam_records_gradients_only_above_its_layer_and_keeps_nothing(tiny_config, pair):
    model = build_deep_model(tiny_config, 'both')
    recorded, kept = [], []

    def note(module, arguments, output):
        recorded.append(output[0].requires_grad)
        kept.append(weakref.ref(output[0]))

    for layer in model.backbone.fusion.layers:
        layer.cross_attention.register_forward_hook(note)
    words, whole = grad_cam(model, *pair, layer=1)
    # Words, then patches, of each layer; the last layer computes only the words.
    assert recorded == [False, False, True, True, True]
    assert not any(reference() is not None for reference in kept)
    assert not words.requires_grad and not whole.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.is_grad_enabled()
    layers = model.backbone.fusion.layers
    assert not any(layer.cross_attention._forward_pre_hooks for layer in layers)


def test_frozen_weights_and_no_grad_do_not_change_the_map(tiny_config, pair):
    model = build_deep_model(tiny_config, 'both')
    _, expected = grad_cam(model, *pair)
    model.requires_grad_(False)
    with torch.no_grad():
        _, actual = grad_cam(model, *pair)
    assert torch.equal(actual, expected)


@torch.no_grad()
def test_anchors_are_where_the_cosine_of_a_group_reaches_delta(model, pair):
    image, text = pair
    second = [tokens.select(torch.tensor([1])) for tokens in pair]
    anchors = [word.patches for word in word_anchors(model, *second, 'abcdef')]
    assert [of_word.shape for of_word in anchors] == [(4, 4, 4)] * 6
    for n in (1, 3):
        for patch in (0, 7, 15):
            for group in range(4):
                channels = slice(8 * group, 8 * group + 8)
                one, other = (
                    image.embeddings[1, 1 + patch, channels],
                    text.embeddings[1, n, channels],
                )
                cosine = torch.nn.functional.cosine_similarity(one, other, dim=0)
                actual = anchors[n][patch // 4, patch % 4, group]
                assert bool(actual) == bool(cosine >= 0.05)


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_in_the_last_layer_only_cls_has_a_map(tiny_config, pair, streams):
    model = build_deep_model(tiny_config, streams)
    last, _ = grad_cam(model, *pair, layer=-1)
    before, _ = grad_cam(model, *pair, layer=-2)
    assert (last[:, 0] > 0).any() and not last[:, 1:].any()
    assert (before[:, 1:4].flatten(2).max(-1).values > 0).all()


@pytest.mark.parametrize('layer', [3, -4])
def test_a_layer_that_the_model_lacks_is_an_error_with_the_number_of_layers(
    tiny_config, pair, layer
):
    model = build_deep_model(tiny_config, 'both')
    with pytest.raises(ValueError, match=f'layer={layer}, expected -3 to 2: the number .* is 3'):
        grad_cam(model, *pair, layer)


def test_grad_cam_needs_an_itm_head(tiny_config, pair):
    tiny_config.model.heads = dict(itc=dict(type='ITCHead'))
    with pytest.raises(ValueError, match='AlbefPretrainer has no ITM head'):
        grad_cam(MODELS.build(tiny_config.model), *pair)


def test_a_layer_for_a_report_without_grad_cam_is_an_error(tiny_config, tmp_path):
    page = tmp_path / 'report.html'
    model = MODELS.build(tiny_config.model)
    with pytest.raises(ValueError, match='layer=1, .* the data set has no image files'):
        write_report(tmp_path, tiny_config, model, {}, page, encode=None, layer=1)
    del model.heads['itm']
    with pytest.raises(ValueError, match="layer=1, .* has no head 'itm'"):
        write_report(tmp_path, tiny_config, model, {}, page, encode=print, layer=1)


def test_chosen_words_have_the_largest_heat_and_are_in_the_order_of_the_text():
    pieces = ['[CLS]', 'the', 'red', 'ring', 'left', 'of', 'blue', 'bar', 'red', '##ish', '[SEP]']
    maps = torch.tensor([9, 9, 5, 1, 4, 9, 3, 2, 8, 9, 9.0])[:, None, None].expand(-1, 2, 2)
    assert [pieces[i] for i in choose_words(pieces, maps)] == ['red', 'left', 'blue', 'bar']


def test_chance_recall_is_the_recall_of_random_rankings():
    text_to_image = [i for i in range(6) for _ in range(1 + i % 3)]
    rankings = {'images': list('abcdef'), 'texts': text_to_image, 'text_to_image': text_to_image}
    torch.manual_seed(0)
    recalls = []
    for _ in range(4000):
        texts, images = torch.randperm(len(text_to_image)).tolist(), torch.randperm(6).tolist()
        for k in (1, 5, 10):
            recalls.append(sum(i in [text_to_image[t] for t in texts[:k]] for i in range(6)) / 6)
            recalls.append(min(k, 6) / 6 if k > 1 else float(images[0] == 0))
    assert chance_recall(rankings) == pytest.approx(100 * sum(recalls) / len(recalls), abs=1)
    texts_of_folds = [0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1, 1]  # two images in each
    of_folds = [chance_recall({'images': 'ab', 'text_to_image': t}) for t in texts_of_folds]
    assert chance_recall(rankings, folds=3) == pytest.approx(sum(of_folds) / 3)
    two = {'images': ['a', 'b'], 'texts': ['a', 'b'], 'text_to_image': [0, 1]}
    with np.errstate(all='raise'):  # there are no ten texts
        assert chance_recall(two) == pytest.approx(100 * 5 / 6)


@pytest.mark.parametrize(
    ('names', 'stages'),
    [
        (['', 'first_stage/'], [', ITC', ', ITM re-ranking']),
        (['coco/', 'coco/first_stage/'], [', coco, ITC', ', coco, ITM re-ranking']),
        (['1k/', '5k/'], [', 1k', ', 5k']),
        (['', '1k/'], [', 1k', '']),
        ([''], ['']),
    ],
)
def test_the_last_stage_is_the_one_that_the_report_begins_with(names, stages):
    metrics = {f'{name}{key}': 1.0 for name in names for key in ('rsum', 'mean_recall')}
    metrics |= {f'{name}mean_recall_std': 0.1 for name in names}
    found = metric_stages(metrics)
    assert [stage.label for stage in found] == stages
    assert found[-1].prefix in names and 'first_stage' not in found[-1].prefix


def test_the_report_has_no_external_files_and_marks_correct_matches(tiny_config):
    tiny_config.train_cfg.max_epochs = 1
    tiny_config.default_hooks.logger.interval = 1
    rankings_file = f'{tiny_config.work_dir}/rankings.json'
    tiny_config.test_cfg.update(save_rankings=rankings_file)
    tiny_config.experiment_name = 'page'
    runner = build_runner(tiny_config)
    runner.train()
    runner.test()
    rankings = json.loads(open(rankings_file).read())
    inferencer = Inferencer(tiny_config, f'{tiny_config.work_dir}/epoch_1.pth')
    out = Path(tiny_config.work_dir, 'report.html')
    folder = Path(tiny_config.work_dir)
    write_report(folder, tiny_config, inferencer.model, rankings, out, inferencer.encode)
    page = out.read_text()
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert not re.search(r'url\((?!#)', page)
    assert page.count('<svg') >= 5  # one curve for each loss
    correct = 0
    for image in (1, 3, 5, 7):  # four of ten, evenly spread
        text = rankings['text_to_image'].index(image)
        correct += image in rankings['ranked_images'][text][:3]
    assert page.count('class="match correct"') == correct
    assert page.count('alt="Grad-CAM of') >= 4
