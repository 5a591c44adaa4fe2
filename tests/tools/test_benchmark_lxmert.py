"""The benchmark of a pre-training step of LXMERT: both sides take a step of the same size."""

import pytest
import torch
from mmengine.config import Config

from tools.analysis import benchmark_lxmert
from xmodal.benchmark import lxmert_peer
from xmodal.errors import ConfigError


@pytest.fixture
def arguments(monkeypatch, tmp_path):
    config = Config.fromfile('configs/lxmert/pretrain_released.py')
    config.model.backbone.image_encoder.depth = config.model.backbone.fusion.depth = 1
    config.model.backbone.text_encoder.num_layers = 1
    config.dump(tmp_path / 'tiny.py')
    line = ['benchmark_lxmert.py', str(tmp_path / 'tiny.py'), '--width', '64', '--batch-size', '2']
    monkeypatch.setattr('sys.argv', [*line, '--answers', '9', '--vocabulary', '50'])
    return benchmark_lxmert.parse_args()


def test_both_sides_have_the_same_number_of_parameters_and_take_a_step(arguments):
    sizes = []
    for side in benchmark_lxmert.SIDES:
        step = benchmark_lxmert.ready_step(arguments, side)
        before = [parameter.detach().clone() for parameter in step.model.parameters()]
        step()
        moved = zip(before, step.model.parameters(), strict=True)
        assert sum(not old.equal(new) for old, new in moved) > 0.9 * len(before)
        assert all(p.grad is None for p in step.model.parameters())
        sizes.append(sum(p.numel() for p in step.model.parameters()))
    assert sizes[0] == sizes[1]


def test_ratios_are_medians_over_the_rounds(arguments, capsys):
    results = {
        'transformers': {'seconds': [2.0, 3.0, 8.0], 'memory': 4.0},
        'xmodal': {'seconds': [1.0, 2.0, 2.0], 'memory': 3.0},
    }
    benchmark_lxmert.report(arguments, results)
    printed = capsys.readouterr().out
    assert 'x 2.000' in printed and 'x 0.750' in printed and '1.50 - 4.00' in printed


def test_both_sides_have_the_same_losses(arguments):
    step = benchmark_lxmert.Step(arguments, 'xmodal')
    assert step.difference() < 1e-5
    with torch.no_grad():
        step.ours.heads['matching'].classifier.bias[0] += 1
    assert step.difference() > 1e-4


def test_a_folder_without_the_public_code_is_a_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r'has no src/lxrt/modeling\.py: expected airsplay'):
        lxmert_peer.load(tmp_path, {}, {}, 2)
