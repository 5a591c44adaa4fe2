"""Deletion curves, against a model that reads a few patches and a literal loop."""

import json
import sys
from types import SimpleNamespace

import pytest
import torch

from tools.analysis import deletion_curves
from tools.analysis.deletion_curves import area, deletion_curve, interval
from xmodal.engine.errors import ConfigError
from xmodal.registry import DATASETS, MODELS


class Model:
    """The logit of a match is the brightness of the first patch of 2 x 2 pixels."""

    def encode_image(self, images):
        return SimpleNamespace(tokens=images)

    def match_logits(self, images, text, pairs):
        assert pairs.tolist() == [[row, row] for row in range(len(images))]
        yes = images[:, 0, :2, :2].mean((1, 2))
        return torch.stack([torch.zeros_like(yes), yes], 1)


def test_patches_get_the_mean_colour_in_the_order_that_is_given():
    images = torch.zeros(3, 3, 4, 4)
    images[:, :, :2, :2] = 4.0  # the first of four patches; the mean is 1
    order = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 3]])
    curve = deletion_curve(Model(), images, None, order, steps=4)
    kept, lost = torch.tensor([4.0, 1.0]).sigmoid().tolist()
    assert curve[0].tolist() == pytest.approx([kept, lost, lost, lost, lost])
    assert curve[1].tolist() == pytest.approx([kept, kept, kept, kept, lost])
    assert curve[2].tolist() == pytest.approx([kept, kept, kept, lost, lost])
    steps = [(a + b) / 2 / 4 for a, b in zip(curve[1], curve[1][1:], strict=False)]
    assert float(area(curve)[1]) == pytest.approx(float(sum(steps)))


def test_the_tool_prints_the_areas_of_a_trained_model(
    tiny_config, trained, tmp_path, monkeypatch, capsys
):
    config = f'{tmp_path}/config.py'
    tiny_config.dump(config)
    out = tmp_path / 'deletion.json'
    arguments = [config, str(trained), '--images', '6', '--steps', '4', '--out', str(out)]
    monkeypatch.setattr(sys, 'argv', ['deletion_curves.py', *arguments])
    deletion_curves.main()
    printed = [line.split('│')[1:3] for line in capsys.readouterr().out.splitlines() if '│' in line]
    curves = json.loads(out.read_text())
    assert curves.pop('checkpoint') == trained.name
    assert [name.strip() for name, _ in printed] == list(curves)
    assert list(curves) == [
        'Grad-CAM, layer 1 of 1',
        'similarity S, mean of the words',
        'random order',
    ]
    for (_, shown), curve in zip(printed, curves.values(), strict=True):
        steps = [(a + b) / 2 / 4 for a, b in zip(curve, curve[1:], strict=False)]
        assert float(shown) == pytest.approx(sum(steps), abs=6e-4)
    with pytest.raises(FileExistsError, match='deletion.json already exists'):
        deletion_curves.main()


def test_the_interval_of_a_few_images_is_students():
    # 97.5 % quantiles of one and of three degrees of freedom, from a table.
    assert interval(torch.tensor([1.0, 3.0])) == pytest.approx((2.0, 12.7062), rel=1e-5)
    values = torch.tensor([0.0, 1.0, 1.0, 4.0])  # with the variance 3
    assert interval(values) == pytest.approx((1.5, 3.182446 * (3 / 4) ** 0.5), rel=1e-5)


def call(config, tmp_path, monkeypatch):
    config.dump(tmp_path / 'config.py')
    weights = MODELS.build(config.model).state_dict()
    torch.save({'state_dict': weights, 'meta': {}}, tmp_path / 'weights.pth')
    arguments = [f'{tmp_path}/config.py', f'{tmp_path}/weights.pth', '--images', '4']
    monkeypatch.setattr(sys, 'argv', ['deletion_curves.py', *arguments])
    found = {}
    measure = deletion_curves.measure
    monkeypatch.setattr(
        deletion_curves, 'measure', lambda args: found.update(measure(args)) or found
    )
    deletion_curves.main()
    return found


def test_the_best_patch_of_a_map_is_deleted_first_and_random_order_is_subtracted(
    tiny_config, tmp_path, monkeypatch, capsys
):
    best = [5, 2, 11, 0]  # of 16 patches, for each image

    def maps(model, image, text):
        values = torch.zeros(4, 16).scatter_(1, torch.tensor(best)[:, None], 1.0)
        return {'planted': values, 'reversed': -values}

    def curve(model, images, text, order, steps):
        """Constant, so that the area is the place of the best patch in the order."""
        places = [row.tolist().index(patch) for row, patch in zip(order, best, strict=True)]
        return torch.tensor(places).float()[:, None].expand(-1, 1 + steps)

    monkeypatch.setattr(deletion_curves, 'caption_maps', maps)
    monkeypatch.setattr(deletion_curves, 'deletion_curve', curve)
    curves = call(tiny_config, tmp_path, monkeypatch)
    areas = {name: area(of_images) for name, of_images in curves.items()}
    assert areas['planted'].tolist() == [0] * 4 and areas['reversed'].tolist() == [15] * 4
    drawn = areas['random order']
    printed = ' '.join(capsys.readouterr().out.split())
    assert f'0.000 │ {-drawn.mean():.3f} ± ' in printed
    assert f'15.000 │ {15 - drawn.mean():.3f} ± ' in printed


def test_a_sample_with_one_text_shows_all_its_words(relocated, tiny_world, tmp_path, monkeypatch):
    config = relocated('configs/acerpe/grounding_shapes.py', tiny_world)
    config.model.backbone.image_encoder.image_size = 32  # of the tiny world
    lengths = []

    def maps(model, image, text):
        lengths.append(text.attention_mask.sum(1).tolist())
        return {'all alike': torch.zeros(len(image.embeddings), 4)}

    monkeypatch.setattr(deletion_curves, 'caption_maps', maps)
    call(config, tmp_path, monkeypatch)
    dataset = DATASETS.build(config.test_dataloader.dataset)
    texts = [dataset[index]['data_samples'].text for index in range(4)]
    assert lengths == [[len(text.split()) + 2 for text in texts]]
    assert min(lengths[0]) > 3


def test_regions_have_no_patches_to_delete(relocated, tiny_world, tmp_path, monkeypatch):
    config = relocated('configs/acerpe/pretrain_shapes_regions.py', tiny_world)
    with pytest.raises(ConfigError, match='test_dataloader.dataset gives regions.*PackImageText'):
        call(config, tmp_path, monkeypatch)
