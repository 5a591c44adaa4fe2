"""Deletion curves, against a model that reads a few patches and a literal loop."""

import sys
from types import SimpleNamespace

import pytest
import torch

from tools.analysis import deletion_curves
from tools.analysis.deletion_curves import area, deletion_curve
from xmodal.engine.launch import build_runner


class Model:
    """The logit of a match is the brightness of the first patch of 2 x 2 pixels."""

    def encode_image(self, images):
        return SimpleNamespace(tokens=images)

    def match_logits(self, images, text, pairs):
        assert pairs.tolist() == [[row, row] for row in range(len(images))]
        yes = images[:, 0, :2, :2].mean((1, 2))
        return torch.stack([torch.zeros_like(yes), yes], 1)


def test_patches_get_the_mean_colour_in_the_order_that_is_given():
    images = torch.zeros(2, 3, 4, 4)
    images[:, :, :2, :2] = 4.0  # the first of four patches; the mean is 1
    order = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])
    curve = deletion_curve(Model(), images, None, order, steps=4)
    kept, lost = torch.tensor([4.0, 1.0]).sigmoid().tolist()
    assert curve[0].tolist() == pytest.approx([kept, lost, lost, lost, lost])
    assert curve[1].tolist() == pytest.approx([kept, kept, kept, kept, lost])
    steps = [(a + b) / 2 / 4 for a, b in zip(curve[1], curve[1][1:], strict=False)]
    assert float(area(curve)[1]) == pytest.approx(float(sum(steps)))


def test_the_tool_prints_the_areas_of_a_trained_model(tiny_config, tmp_path, monkeypatch, capsys):
    tiny_config.train_cfg.max_epochs = 1
    runner = build_runner(tiny_config)
    runner.train()
    config = f'{tmp_path}/config.py'
    tiny_config.dump(config)
    arguments = [config, f'{runner.work_dir}/epoch_1.pth', '--images', '6', '--steps', '4']
    monkeypatch.setattr(sys, 'argv', ['deletion_curves.py', *arguments])
    deletion_curves.main()
    printed = capsys.readouterr().out
    for name in ('Grad-CAM, layer 0', 'similarity S, mean of the words', 'random order'):
        assert name in printed
