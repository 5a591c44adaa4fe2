"""Grounding from files to metrics, on the tiny world."""

import json

import cv2
import pytest
import torch

from xmodal.engine.launch import build_runner
from xmodal.engine.loops.grounding import print_metrics


@pytest.fixture
def config(shrink):
    """The embedded grounding, tiny."""
    config = shrink('configs/acerpe/grounding_shapes.py')
    config.train_cfg.max_epochs = 1
    config.model.backbone.image_encoder.conv_stem = False  # a map has one value a patch
    config.experiment_name = 'grounding'
    return config


def test_expressions_train_as_captions_do_and_splits_are_tested_apart(config, tmp_path):
    config.test_evaluator.save_predictions = str(tmp_path / 'boxes.json')
    config.test_cfg.save_images = str(tmp_path / 'images')
    runner = build_runner(config)
    runner.train()
    metrics = runner.test()
    assert set(metrics) == {
        f'{split}/{name}'
        for split in ('val', 'testA', 'testB')
        for name in ('accuracy', 'pointing', 'chance')
    }
    boxes = json.loads((tmp_path / 'boxes.json').read_text())
    assert len(boxes) == len(runner.test_dataloader.dataset)
    images = sorted((tmp_path / 'images').iterdir())
    assert [image.name for image in images] == sorted(f'{box["sent_id"]}.jpg' for box in boxes)
    assert cv2.imread(str(images[0])).shape[1] >= 384
    with pytest.raises(FileExistsError):
        build_runner(config).test()


@pytest.mark.parametrize(('layer', 'index'), [(None, 0), (1, 1), (-1, 1)])
def test_the_chosen_box_is_that_of_a_literal_map(config, layer, index):
    config.model.backbone.fusion.depth = 2
    config.test_cfg.layer = layer
    runner = build_runner(config)
    model = runner.model.eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    loop = runner.build_test_loop(config.test_cfg)
    sample = loop.dataloader.dataset[3]
    batch = dict(inputs=sample['inputs'][None], data_samples=[sample['data_samples']])
    (found,) = loop.predict(model, batch)

    inputs = model.data_preprocessor(batch, False)['inputs']
    image = model.encode_image(inputs.images).tokens
    text = model.encode_text(inputs.input_ids, inputs.attention_mask).tokens
    fused = model.backbone.fuse(image, text, need_attentions=True)
    attention = fused.attentions[index].text_to_image
    _, yes = model.heads['itm'](fused.text_tokens)[0]
    (gradient,) = torch.autograd.grad(yes, attention)
    heat = (attention * gradient.clamp(min=0)).mean(1)[0, :, 1:].mean(0).view(1, 1, 4, 4)
    heat = torch.nn.functional.interpolate(heat.detach(), (32, 32), mode='bicubic')[0, 0]
    torch.testing.assert_close(found.heat, heat, atol=1e-6, rtol=1e-4)
    scores = [
        heat[y : y + height, x : x + width].sum() / (width * height) ** 0.5
        for x, y, width, height in (map(int, box) for box in found.proposals)
    ]
    assert found.chosen == max(range(len(scores)), key=lambda place: scores[place])


def test_a_map_of_similarity_is_the_mean_over_words_and_groups(config):
    config.test_cfg.maps = 'similarity'
    runner = build_runner(config)
    model = runner.model.eval()
    loop = runner.build_test_loop(config.test_cfg)
    samples = [loop.dataloader.dataset[i] for i in (3, 4)]
    batch = loop.dataloader.collate_fn(samples)
    found = loop.predict(model, batch)

    inputs = model.data_preprocessor(batch, False)['inputs']
    image = model.encode_image(inputs.images).tokens.embeddings[:, 1:]
    text = model.encode_text(inputs.input_ids, inputs.attention_mask).tokens.embeddings
    groups = model.backbone.position.groups
    for row, sample in enumerate(found):
        count = int(inputs.attention_mask[row].sum())
        heat = torch.zeros(16)
        for word in text[row, 1:count].unflatten(-1, (groups, -1)):
            for group, patches in enumerate(image[row].unflatten(-1, (groups, -1)).unbind(1)):
                cosine = torch.cosine_similarity(patches, word[group][None], dim=-1)
                heat += cosine / (groups * (count - 1))
        heat = torch.nn.functional.interpolate(heat.view(1, 1, 4, 4), (32, 32), mode='bicubic')
        torch.testing.assert_close(sample.heat, heat.detach()[0, 0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ('maps', 'position', 'message'),
    [
        ('anchors', 'ace_rpe', "test_cfg.maps='anchors', expected 'grad_cam' or 'similarity'"),
        ('similarity', 'uniform', "need .*type='AnchorRelativePosition'.*UniformPosition"),
        ('similarity', 'none', "need .*type='AnchorRelativePosition'.*NoPosition"),
    ],
)
def test_maps_that_a_model_does_not_have_are_an_error(config, maps, position, message):
    config.test_cfg.maps = maps
    config.model.backbone.position = dict(type=position)
    with pytest.raises(ValueError, match=message):
        build_runner(config).test()


def test_the_table_has_splits_and_no_row_for_the_metric_of_a_plug_in(capsys):
    figures = {'val/accuracy': 1.25, 'val/pointing': 2.5, 'val/chance': 3.0}
    print_metrics({'mean_iou': 4.0, **figures, 'mine/iou': 5.0})
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if '│' in line]
    assert rows == [['│', 'val', '│', '1.2', '│', '2.5', '│', '3.0', '│']]


def test_a_layer_that_the_model_lacks_is_an_error_before_any_file_is_written(config, tmp_path):
    config.experiment_name = 'grounding layer'
    config.test_cfg.update(layer=1, save_images=str(tmp_path / 'images'))
    with pytest.raises(ValueError, match='layer=1, expected -1 to 0: the number .* is 1'):
        build_runner(config).test()
    assert not (tmp_path / 'images').exists()
